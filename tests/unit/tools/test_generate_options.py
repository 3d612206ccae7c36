import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_committed_page_is_current():
    spec = importlib.util.spec_from_file_location("generate_options", ROOT / "tools" / "generate_options.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert page == module.render(), "run tools/generate_options.py"
