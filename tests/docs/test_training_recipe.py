"""What the recipe for training loops shows, inside the packages that call it."""

import doctest
import re
from pathlib import Path

import pytest

import omma

torch = pytest.importorskip("torch", reason="the recipe needs PyTorch")

PAGE = (Path(__file__).parents[2] / "docs/recipes/training.md").read_text(encoding="utf-8")


def block(name):
    """What a block of code defines, run as it stands on the page."""
    (found,) = (
        one for one in re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL) if f"class {name}(" in one
    )
    names = {"__name__": "recipe"}
    exec(found, names)
    return names[name]


def compute_metrics():
    """The function that is given to the Trainer of Hugging Face."""
    names = {"__name__": "recipe"}
    for example in doctest.DocTestParser().get_examples(PAGE)[:3]:
        exec(example.source, names)
    return names["compute_metrics"]


def rows(n=600, m=5):
    """Logits as features, and labels that follow them."""
    eta, y = omma.datasets.long_tail(n=n, m=m, seed=0)
    logits = torch.logit(torch.as_tensor(eta, dtype=torch.float32))
    return logits, torch.as_tensor(y, dtype=torch.float32)


def test_batches_add_up_to_the_metric_of_all_rows():
    pytest.importorskip("torchmetrics", reason="the recipe needs torchmetrics")
    eta, y = omma.datasets.long_tail(n=300, m=5, seed=0)
    decided = (eta > 0.3).astype(int)
    metric = block("OfDecisions")("macro_f1", 5)
    for start in range(0, 300, 64):
        part = slice(start, start + 64)
        metric.update(torch.as_tensor(decided[part]), torch.as_tensor(y[part]))
    assert float(metric.compute()) == pytest.approx(omma.metric("macro_f1").score(y, decided))
    metric.reset()
    metric.update(torch.as_tensor(decided[:10]), torch.as_tensor(y[:10]))
    assert int(metric.rows) == 10


@pytest.mark.filterwarnings("ignore")  # lightning has much to say of workers and loggers
def test_lightning_logs_the_metric_of_decisions(tmp_path):
    lightning = pytest.importorskip("lightning", reason="the recipe needs lightning")
    logits, labels = rows()

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(5, 5)
            torch.nn.init.eye_(self.layer.weight)
            torch.nn.init.zeros_(self.layer.bias)

        def validation_step(self, batch, batch_idx):
            return {"probabilities": torch.sigmoid(self.layer(batch[0]))}

    pairs = torch.utils.data.TensorDataset(logits, labels)
    callback = block("Decisions")("macro_f1", 5)
    trainer = lightning.Trainer(
        accelerator="cpu",
        callbacks=[callback],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    (logged,) = trainer.validate(
        Module(), torch.utils.data.DataLoader(pairs, batch_size=64), verbose=False
    )
    twin = omma.OnlineClassifier(omma.Auto("macro_f1"), n_labels=5)
    for start in range(0, 600, 64):
        some = slice(start, start + 64)
        twin.predict(torch.sigmoid(logits[some]))
        twin.update(labels[some])
    assert logged["val_macro_f1"] == pytest.approx(twin.value, abs=1e-6)
    assert callback.rule.predict(torch.sigmoid(logits)).shape == (600, 5)


@pytest.mark.filterwarnings("ignore")  # transformers has much to say of its own future
def test_the_trainer_of_hugging_face_is_judged_by_it(tmp_path):
    transformers = pytest.importorskip("transformers", reason="the recipe needs transformers")
    pytest.importorskip("accelerate", reason="its Trainer needs accelerate")
    logits, labels = rows()

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = torch.nn.Parameter(torch.zeros(5))

        def forward(self, features, labels):
            found = features + self.shift
            loss = torch.nn.functional.binary_cross_entropy_with_logits(found, labels)
            return {"loss": loss, "logits": found}

    data = [{"features": x, "labels": y} for x, y in zip(logits, labels, strict=True)]
    options = transformers.TrainingArguments(
        str(tmp_path), report_to=[], use_cpu=True, disable_tqdm=True, label_names=["labels"]
    )
    trainer = transformers.Trainer(
        Model(), options, eval_dataset=data, compute_metrics=compute_metrics()
    )
    found = trainer.evaluate()
    own = compute_metrics()((logits.numpy(), labels.numpy()))
    assert found["eval_macro_f1"] == pytest.approx(own["macro_f1"], abs=1e-6)
    assert found["eval_macro_f1"] > found["eval_macro_f1_at_half"]
