import pytest

from octavo.base.errors import OctavoError
from octavo.config.machine import detect_isa_levels, read_machine

GIB = 2**30


@pytest.fixture
def root(tmp_path):
    """A file system of 16 GiB, 12 available, with no control group limits."""
    put(tmp_path, "proc/meminfo", f"MemTotal: {16 * 2**20} kB\nMemAvailable:   {12 * 2**20} kB\nHugePages_Total: 0\n")
    return tmp_path


def put(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def read(root, num_affinity_cores=8):
    return read_machine(root=root, num_affinity_cores=num_affinity_cores, isa_levels=("scalar",))


def test_without_control_groups_the_machine_counts(root):
    facts = read(root)
    assert (facts.memory_total_bytes, facts.memory_available_bytes, facts.num_cores) == (16 * GIB, 12 * GIB, 8)


def test_version_2_limits_count_and_inactive_file_pages_are_free(root):
    put(root, "proc/self/cgroup", "0::/box\n")
    put(root, "sys/fs/cgroup/box/memory.max", f"{4 * GIB}\n")
    put(root, "sys/fs/cgroup/box/memory.current", f"{3 * GIB}\n")
    put(root, "sys/fs/cgroup/box/memory.stat", f"anon 5\ninactive_file {GIB}\nactive_file 7\n")
    put(root, "sys/fs/cgroup/box/cpu.max", "250000 100000\n")
    facts = read(root)
    assert (facts.memory_total_bytes, facts.memory_available_bytes, facts.num_cores) == (4 * GIB, 2 * GIB, 2)


def test_the_tightest_of_nested_groups_counts(root):
    put(root, "proc/self/cgroup", "0::/pod/box\n")
    put(root, "sys/fs/cgroup/pod/memory.max", f"{2 * GIB}\n")
    put(root, "sys/fs/cgroup/pod/memory.current", f"{GIB}\n")
    put(root, "sys/fs/cgroup/pod/box/memory.max", "max\n")
    put(root, "sys/fs/cgroup/pod/box/memory.current", "1\n")
    put(root, "sys/fs/cgroup/pod/cpu.max", "max 100000\n")
    facts = read(root)
    assert (facts.memory_available_bytes, facts.num_cores) == (GIB, 8)


def test_in_a_container_the_mounted_top_stands_for_a_path_that_is_not_there(root):
    put(root, "proc/self/cgroup", "0::/host/only/path\n")
    put(root, "sys/fs/cgroup/memory.max", f"{GIB}\n")
    put(root, "sys/fs/cgroup/memory.current", "0\n")
    assert read(root).memory_available_bytes == GIB


def test_version_1_limits_count(root):
    put(root, "proc/self/cgroup", "5:memory:/box\n4:cpu,cpuacct:/box\n3:devices:/box\nbroken\n")
    put(root, "sys/fs/cgroup/memory/box/memory.limit_in_bytes", f"{6 * GIB}\n")
    put(root, "sys/fs/cgroup/memory/box/memory.usage_in_bytes", f"{2 * GIB}\n")
    put(root, "sys/fs/cgroup/memory/box/memory.stat", f"total_inactive_file {GIB}\n")
    put(root, "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "150000\n")
    put(root, "sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n")
    facts = read(root)
    assert (facts.memory_available_bytes, facts.num_cores) == (5 * GIB, 1)


def test_version_1_writes_no_limit_as_a_large_number(root):
    put(root, "proc/self/cgroup", "5:memory:/\n4:cpu:/\n")
    put(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    put(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n")
    put(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
    put(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    facts = read(root)
    assert (facts.memory_available_bytes, facts.num_cores) == (12 * GIB, 8)


def test_a_group_over_its_limit_has_nothing_left(root):
    put(root, "proc/self/cgroup", "0::/\n")
    put(root, "sys/fs/cgroup/memory.max", "100\n")
    put(root, "sys/fs/cgroup/memory.current", "200\n")
    assert read(root).memory_available_bytes == 0


def test_a_part_of_a_core_still_is_one(root):
    put(root, "proc/self/cgroup", "0::/\n")
    put(root, "sys/fs/cgroup/cpu.max", "50000 100000\n")
    assert read(root).num_cores == 1


def test_without_meminfo_there_is_an_error_that_says_so(tmp_path):
    with pytest.raises(OctavoError, match="meminfo"):
        read(tmp_path)


def test_this_machine_can_be_read():
    facts = read_machine()
    assert 0 < facts.memory_available_bytes <= facts.memory_total_bytes
    assert facts.num_cores >= 1


def test_instruction_sets_ascend_from_scalar():
    order = ("scalar", "avx2", "avx512", "avx512_bf16", "amx")
    levels = detect_isa_levels()
    assert levels[0] == "scalar"
    assert [order.index(level) for level in levels] == sorted(order.index(level) for level in levels)
