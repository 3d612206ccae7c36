import pytest
import yaml

from octavo.cli.main import main


@pytest.mark.needs_smollm2
def test_a_printed_configuration_of_the_real_model_replays(smollm2_path, tmp_path, capsys):
    flags = [
        "--model",
        str(smollm2_path),
        "--max-num-seqs",
        "4",
        "--max-model-len",
        "1k",
        "--scheduling-policy=priority",
    ]
    assert main(["generate", "--print-config", *flags]) == 0
    printed = capsys.readouterr().out
    path = tmp_path / "printed.yaml"
    path.write_text(printed, encoding="utf-8")
    assert main(["generate", "--print-config", "--config", str(path)]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == yaml.safe_load(printed)
    options = yaml.safe_load(printed)
    assert options["max_model_len"] == 1000
    assert {name for name, value in options.items() if value == "auto"} == {"generation_config", "load_format"}
