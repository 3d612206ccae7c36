"""KV memory as the planner sees it: blocks, who holds them, which prefix each of them stores.

Read in this order: pool (blocks), hashing (digests), prefix (digest -> block), groups (what each kind of layer needs),
overlay and plan (decisions of one round), manager (commit, publish, free), leases, check.
"""
