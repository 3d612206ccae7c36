import mmap

import pytest

from octavo.base.errors import LoadError
from octavo.loading.mapped_file import MappedFile


def test_views_show_the_file_and_outlive_it(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(200)))
    file = MappedFile(path)
    view = file.view(100, 10)
    file.close()
    file.close()
    assert view.tolist() == list(range(100, 110))
    assert not view.flags.writeable


def test_dropped_pages_are_read_again(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes([7]) * (4 * mmap.PAGESIZE))
    file = MappedFile(path)
    view = file.view(0, file.size)
    assert view.sum() == 7 * file.size
    file.drop(1, file.size - 1)
    file.drop(1, 2)
    assert view.sum() == 7 * file.size


@pytest.mark.parametrize("make", [lambda path: path.touch(), lambda path: path.mkdir(), lambda path: None])
def test_what_cannot_be_mapped_is_one_error_naming_it(tmp_path, make):
    path = tmp_path / "file"
    make(path)
    with pytest.raises(LoadError, match=str(path)):
        MappedFile(path)
