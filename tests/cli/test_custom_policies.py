"""Custom policies of a module in the current directory: ``banditrank simulate --policy MODULE:CLASS``."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.command_line import check_refusal, run
from helpers.custom_policies import write_module

SMALL = ["--horizon", "60", "--replications", "2"]


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write_module(tmp_path, "my_module")
    yield
    sys.modules.pop("my_module", None)


def test_a_custom_policy_is_simulated_beside_a_built_in_one(capsys: pytest.CaptureFixture) -> None:
    arguments = ["my_problem.toml", "--policy", "my_module:MostClicked,random", *SMALL, "--json", "-"]
    status, output, _ = run(capsys, "simulate", *arguments)
    assert status == 0
    assert [each["policy"] for each in json.loads(output)["runs"]] == ["most-clicked", "random"]


def test_what_a_policy_prints_is_not_part_of_the_result(capsys: pytest.CaptureFixture) -> None:
    Path("my_printer.py").write_text(
        "from my_module import MostClicked\n"
        "class Printer(MostClicked):\n"
        "    def rank(self, counts, user_type, *, rng, scratch=None):\n"
        "        print('ranking')\n"
        "        return super().rank(counts, user_type, rng=rng, scratch=scratch)\n",
        encoding="utf-8",
    )
    arguments = ["my_problem.toml", "--policy", "my_printer:Printer", *SMALL, "--json", "-"]
    status, output, complaint = run(capsys, "simulate", *arguments)
    sys.modules.pop("my_printer")
    assert status == 0
    assert len(json.loads(output)["runs"]) == 1
    assert complaint.startswith("ranking\n")


def test_a_utility_applies_to_equal_treatment_alone(capsys: pytest.CaptureFixture) -> None:
    """Finding 9: a utility beside several treatments is that of those which have one."""
    arguments = ["--policy", "random", "--treatment", "personalized,equal", "--utility", "nash", *SMALL]
    status, output, _ = run(capsys, "simulate", "my_problem.toml", *arguments, "--json", "-")
    assert status == 0
    assert [each["utility"] for each in json.loads(output)["runs"]] == [None, "nash"]


def test_policies_of_one_name_are_told_apart(capsys: pytest.CaptureFixture) -> None:
    """Finding 8: the table, the JSON and the directories of policies of one name are their own."""
    arguments = ["my_problem.toml", "--policy", "my_module:MostClicked,my_module:Twin", *SMALL]
    labels = ["most-clicked-personalized-class=MostClicked", "most-clicked-personalized-class=Twin"]
    status, output, _ = run(capsys, "simulate", *arguments, "--save", "runs", "--json", "-")
    assert status == 0
    assert [each["label"] for each in json.loads(output)["runs"]] == labels
    assert sorted(path.name for path in Path("runs").iterdir()) == labels
    Path("other_module.py").write_text(
        "from my_module import MostClicked\nclass Twin(MostClicked):\n    pass\n"
    )
    arguments[2] = "my_module:Twin,other_module:Twin"
    message = (
        "--policy must have labels of their own, and numbers 1 and 2 have the same, got 'most-clicked-pers"
    )
    check_refusal(capsys, ["simulate", *arguments], message)
    sys.modules.pop("other_module")


def test_a_saved_run_of_changed_source_is_not_resumed(capsys: pytest.CaptureFixture) -> None:
    """Finding 7: ``--save`` refuses to resume a policy whose source has changed, and resumes it otherwise."""
    arguments = ["my_problem.toml", "--policy", "my_module:MostClicked", "--horizon", "60", "--save", "runs"]
    assert run(capsys, "simulate", *arguments, "--replications", "2")[0] == 0
    assert run(capsys, "simulate", *arguments, "--replications", "3")[0] == 0
    sys.modules.pop("my_module")
    file = Path("my_module.py")
    file.write_text(file.read_text(encoding="utf-8").replace("0.1", "0.2"), encoding="utf-8")
    message = r"save directory must be new or hold the same simulation, .*the source of its policy changed"
    check_refusal(capsys, ["simulate", *arguments, "--replications", "3"], message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "absent:MyPolicy"], "--policy must be in a module .*, and there is no absent, got"),
        (["--policy", "my_module:Needy"], "--policy must need no arguments but .*, and needs epsilon, got"),
        (
            ["--policy", "my_module:MostClicked", "--treatment", "equal"],
            "--treatment must be one that my_module:MostClicked has, personalized, got 'equal'",
        ),
        (
            ["--policy", "my_module:MostClicked", "--memory", "window:30"],
            "--memory must be left out: my_module:MostClicked is not compiled, got 'window:30'",
        ),
        (["--policy", "my_module:MostClicked", "--coefficient", "1"], "--coefficient must be left out"),
    ],
)
def test_custom_policies_that_do_not_work_are_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture
) -> None:
    check_refusal(capsys, ["simulate", *arguments, *SMALL], message)


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_what_a_custom_policy_raises_is_one_line(command: str, capsys: pytest.CaptureFixture) -> None:
    arguments = (
        ["my_problem.toml", *SMALL] if command == "simulate" else ["--suite", "my_problem.toml", "--quick"]
    )
    status, output, complaint = run(capsys, command, *arguments, "--policy", "my_module:Dividing")
    raised = r"ZeroDivisionError: [a-z ]+"
    message = rf"banditrank: policy 'my_module:Dividing' raised (?:{raised}) \(my_module.py, line 51\)\n"
    assert (status, output) == (2, "")
    assert re.fullmatch(message, complaint.splitlines(keepends=True)[-1])
    assert "Traceback" not in complaint
