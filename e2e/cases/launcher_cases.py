"""launcher_cases.py - the claims of PyTorch's own launcher tests, as command lines. test_launchers.py runs each with both
launchers and compares all observable results. A line is shell syntax, variables first; PROBE is ranks/probe.py and SHELL
ranks/probe.sh, whose arguments tell the ranks what to do. `where` is the file and test that the claim is from.
A case lists its intended differences as {pattern of the fact: reason}: every difference must be listed, and every listed one
must occur. `code` is our exit status where PyTorch's is always 1."""

from dataclasses import dataclass, field


@dataclass
class Case:
    where: str
    line: str
    code: int = None  # None: 0, or 2 for what is refused
    differs: dict = field(default_factory=dict)
    long: bool = False


OWN_ID = {r"\$TORCHELASTIC_RUN_ID$": "--rdzv-id stays the run's id on one node too: --resume auto goes by it"}
NEW_PROCESS = {r" unbuffered$": "--run-path too starts a new Python with -u: there is no interpreter to share",
               r" leads session$": "every rank leads a session, so that what it starts can be ended with it"}
EASY = "a command line that cannot mean anything else is taken"


def lenient(why=EASY):
    """Ours starts the ranks, PyTorch's refuses."""
    return {r"^(ended|rank .*|out|err|OMP_.*)$": why}


def refused(why):
    """PyTorch's starts the ranks, ours refuses."""
    return lenient(why)


BAD_ERROR_FILE = {r"^report ": "PyTorch's launcher dies of what it cannot read there; ours reports the rank"}

CASES = [
    # ---- how many ranks, which program ----
    Case("test_run: user_script_python", "--nnodes=1 --nproc-per-node=4 --rdzv-id=run7 --monitor-interval=1 --start-method=spawn "
         "PROBE a b", differs=OWN_ID),
    Case("test_run: user_script_python_caffe2_bc", "--nnodes=1 --nproc-per-node=2 --master-addr=localhost --master-port={port} "
         "--node-rank=0 PROBE"),
    Case("test_run: user_script_bash", "--nproc-per-node=2 --no-python SHELL x"),
    Case("test_run: user_script_bash, with --module", "--no-python --module SHELL x"),
    Case("test_run: user_script_default_nproc", "--nnodes=1 --no-python SHELL x", long=True),
    Case("test_run: with_env_vars", "PET_NNODES=1 PET_NPROC_PER_NODE=2 PET_RDZV_ID=run7 PET_MONITOR_INTERVAL=1 "
         "PET_START_METHOD=spawn PET_NO_PYTHON=1 PET_MODULE=0 SHELL x"),
    Case("test_run: with_env_vars, both", "PET_NO_PYTHON=1 PET_MODULE=1 SHELL x", long=True),
    Case("test_run: nproc auto", "--nproc-per-node=auto PROBE"),
    Case("test_run: nproc cpu", "--nproc-per-node=cpu PROBE", long=True),
    Case("test_run: nproc unknown", "--nproc-per-node=unknown PROBE"),
    Case("test_run: nproc gpu, none", "--nproc-per-node=gpu PROBE", long=True),
    Case("test_run: nproc xpu, none", "--nproc-per-node=xpu PROBE", long=True),
    Case("test_run: launch_elastic", "--nnodes=1:2 --nproc-per-node=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:{port} "
         "--rdzv-conf=\"'join_timeout=600,last_call_timeout=1,timeout=600'\" --rdzv-id=run7 PROBE"),
    Case("test_run: launch_elastic_worker_raise_exception", "--nnodes=1:2 --nproc-per-node=2 --rdzv-backend=c10d "
         "--rdzv-endpoint=localhost:{port} --rdzv-conf=last_call_timeout=1 --rdzv-id=run7 PROBE raise=bad@1 wait", code=1),
    Case("test_run: standalone", "--nnodes=1 --nproc-per-node=2 --standalone PROBE"),
    Case("run: standalone ignores the rest", "--standalone --rdzv-backend=etcd --rdzv-endpoint=nosuch:1 PROBE", long=True),
    Case("test_run: run_path", "--run-path --nproc-per-node=2 PROBE a", differs=NEW_PROCESS, long=True),
    Case("run: run_path takes precedence", "--run-path --no-python --module PROBE", differs=NEW_PROCESS, long=True),
    Case("test_run: min_max_nodes_parse", "--nnodes=2:20:30 PROBE"),
    Case("test_run: min_max_nodes_parse, one", "--nnodes=1:1 PROBE", long=True),
    Case("test_run: nnodes 0", "--nnodes=0 PROBE", long=True),
    Case("test_run: logs_specs", "--logs-specs=default PROBE", long=True),
    Case("test_run: logs_specs entrypoint must be defined", "--logs-specs=nosuch PROBE"),
    Case("test_run: capture_logs", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE='[rank${rank}]: ' --redirect=3 --tee=3 "
         "--nproc-per-node=2 PROBE out=creating err=warned"),
    Case("test_run: virtual_local_rank", "CUDA_VISIBLE_DEVICES=3,5 --virtual-local-rank --nproc-per-node=2 PROBE"),
    Case("test_run: virtual_local_rank, unset", "--virtual-local-rank --nproc-per-node=2 PROBE", long=True),
    Case("launch_test: without_env", "launch --nproc-per-node=2 --master-port={port} PROBE a"),
    Case("launch_test: with_env", "launch --nproc-per-node=2 --use-env PROBE a"),
    Case("launch: no_python needs use_env", "launch --no-python SHELL a"),
    Case("launch: use_env has no variable", "PET_USE_ENV=1 launch PROBE", long=True),
    Case("run: a module", "--nproc-per-node=2 -m probe a"),
    Case("run: no such script", "./nosuch.py"),
    Case("multiprocessing: binary_incorrect_entrypoint", "--no-python ./nosuch", code=1),
    Case("run: words pass unchanged", "PROBE 'a b' '' '$x' '*' --nnodes=3"),
    # ---- the environment of the ranks ----
    Case("local_elastic_agent: env", "RANK=5 WORLD_SIZE=7 LOCAL_RANK=9 MASTER_PORT=9 MASTER_ADDR=h TORCHELASTIC_RUN_ID=old "
         "TORCHELASTIC_ERROR_FILE=/old --nproc-per-node=2 --role=trainer --max-restarts=4 PROBE"),
    Case("local_elastic_agent: what is set stays", "TORCH_NCCL_ASYNC_ERROR_HANDLING=0 OMP_NUM_THREADS=3 "
         "TORCHELASTIC_TIMER_FILE=/nosuch TORCHELASTIC_HEALTH_CHECK_PORT=12345 --nproc-per-node=2 PROBE"),
    Case("local_elastic_agent: watchdog enabled", "TORCHELASTIC_ENABLE_FILE_TIMER=1 PROBE", long=True,
         differs={r"\$TORCHELASTIC_TIMER_FILE$": "ours has no watchdog, and says so"}),
    Case("test_api: signals in the environment", "--signals-to-handle=SIGTERM,SIGUSR1,SIGUSR2 PROBE", long=True),
    Case("test_api: invalid signals", "--signals-to-handle=SIGTERM,INVALID_SIGNAL PROBE"),
    # ---- failures ----
    Case("local_elastic_agent: bipolar", "--nproc-per-node=2 --max-restarts=2 --log-dir=logs -r3 PROBE out=a exit=138@1 wait",
         code=138),
    Case("local_elastic_agent: rank_restart_after_failure", "--nproc-per-node=2 --max-restarts=3 PROBE kill=9@1.0 out=done"),
    Case("multiprocessing: binary_exit", "--nproc-per-node=2 -r=0:3 --log-dir=logs PROBE err=exits@0 exit=138@0", code=138),
    Case("multiprocessing: binary_raises", "--nproc-per-node=2 PROBE raise=bad@1 wait", code=1),
    Case("multiprocessing: binary_signal", "--nproc-per-node=2 PROBE kill=11@0 wait", code=139),
    Case("multiprocessing: SIGKILL", "PROBE kill=9", code=137, long=True),
    Case("errors/api: SIGABRT", "PROBE kill=6", code=134, long=True),
    Case("errors/api: process_failure", "--nproc-per-node=2 --log-dir=logs PROBE 'error={\"message\": {\"message\": "
         "\"ValueError: hm\", \"extraInfo\": {\"py_callstack\": \"Traceback\", \"timestamp\": \"10\"}}}@1' exit=3@1 wait", code=3),
    Case("errors/api: process_failure_new_format", "--log-dir=logs PROBE 'error={\"message\": \"all is lost\", \"timestamp\": 10}' "
         "exit=3", code=3),
    Case("errors/api: process_mast_error_format", "--log-dir=logs PROBE 'error={\"message\": \"all is lost\", \"timestamp\": "
         "\"10\"}' exit=3", code=3, long=True),
    Case("errors/api: failure_incorrect_reply_file", "--log-dir=logs PROBE 'error={\"unknown_key\": \"x\"}' exit=3", code=3,
         differs=BAD_ERROR_FILE),
    Case("errors/api: record_good_fn leaves none", "--log-dir=logs PROBE", long=True),
    Case("local_elastic_agent: sad_function copies the error file", "TORCHELASTIC_ERROR_FILE={folder}/reply.json PROBE 'error="
         "{\"message\": {\"message\": \"ValueError: hm\", \"extraInfo\": {\"timestamp\": \"10\"}}}' exit=1", code=1,
         differs={r"^report error file$": "without --log-dir the error files are gone at the end: none is named"}),
    # ---- output ----
    Case("multiprocessing: binary_redirect_and_tee", "-r 0:2,1:0 -t 0:1,1:2 --nproc-per-node=2 --log-dir=logs PROBE out=o err=e"),
    Case("multiprocessing: redirects all", "-r3 --nproc-per-node=2 --log-dir=logs PROBE out=o err=e", long=True),
    Case("multiprocessing: std_from_str 11", "-r 11 PROBE", long=True),
    Case("multiprocessing: std_from_str 0:1,1", "-r 0:1,1 PROBE", long=True),
    Case("multiprocessing: std_from_str 1,0:1", "-r 1,0:1 PROBE", long=True),
    Case("multiprocessing: std_from_str 0:1,", "-r 0:1, PROBE", differs=lenient()),
    Case("multiprocessing: local_ranks_filter", "--nproc-per-node=2 --local-ranks-filter=1 -t 0:1 --log-dir=logs PROBE out=o err=e",
         differs={r"^file logs/.*/0/stderr.log$": "what is not shown is kept where there is a log folder"}),
    Case("run: local_ranks_filter, no numbers", "--local-ranks-filter=a PROBE", long=True),
    Case("run: local_ranks_filter, a comma too many", "--local-ranks-filter=0, PROBE", differs=lenient(), long=True),
    Case("multiprocessing: invalid_log_dir", "--log-dir=/etc/passwd PROBE", code=1),
    Case("multiprocessing: log_dir is made", "--log-dir=a/b/c -r3 PROBE out=o", long=True),
    Case("tail_log: custom_prefix", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE='[${role_name}-${local_rank}:${rank}:${no}]:' --role=t "
         "-t3 --nproc-per-node=2 PROBE out=o err=e", long=True),
    Case("tail_log: custom_filter", "--duplicate-stdout-filters=two --duplicate-stderr-filters=x --tee 3 --log-dir=logs "
         "--nproc-per-node=2 PROBE out=one err=two out=two"),
    Case("tqdm: a bar under --tee", "--tee=3 --log-dir=logs --nproc-per-node=2 PROBE bar=5 out=done"),
    Case("accelerate: its variables reach the ranks", "ACCELERATE_USE_CPU=true ACCELERATE_MIXED_PRECISION=no FORK_LAUNCHED=0 "
         "OMP_NUM_THREADS=1 --nproc-per-node=2 -m probe out=o", long=True),
    # ---- the rendezvous ----
    Case("rendezvous/utils: config with spaces", "--rdzv-conf='  a = x ,b=y=z' PROBE"),
    Case("rendezvous/utils: config empty", "--rdzv-conf='   ' PROBE", long=True),
    Case("rendezvous/utils: config with a comma too many", "--rdzv-conf=a=x, PROBE", differs=lenient()),
    Case("rendezvous/utils: config without a value", "--rdzv-conf=b=x,a=,c=y PROBE", differs=lenient(), long=True),
    Case("rendezvous/utils: config without =", "--rdzv-conf=a PROBE", long=True),
    Case("rendezvous/utils: port is invalid", "--rdzv-backend=c10d --rdzv-endpoint=localhost:abc PROBE", long=True),
    Case("rendezvous/utils: port is too big", "--rdzv-backend=c10d --rdzv-endpoint=localhost:70000 PROBE", long=True),
    Case("static_rendezvous: missing_port", "--rdzv-endpoint=localhost PROBE",
         differs=lenient("with static the port is 29500 where none is given")),
    Case("run: c10d alone", "--rdzv-backend=c10d --rdzv-endpoint=localhost:0 --rdzv-id=7 --nproc-per-node=2 PROBE"),
    Case("run: unknown backend", "--rdzv-backend=zeus PROBE", long=True),
    # ---- shutdown ----
    Case("shutdown_timeout: negative", "--shutdown-timeout=-5 PROBE", long=True),
    Case("shutdown_timeout: zero", "--shutdown-timeout=0 PROBE", long=True),
    # ---- users' command lines ----
    Case("argparse: abbreviations", "--nnode=1 --redirect=3 --nproc_per 2 --log-dir=logs PROBE out=o"),
    Case("argparse: ambiguous", "--master x PROBE"),
    Case("argparse: ambiguous by its spellings", "--nproc 1 PROBE", differs=lenient("both are one option"), long=True),
    Case("argparse: mixed spellings", "--nproc-per_node 2 PROBE", differs=lenient(), long=True),
    Case("argparse: an option is no value", "--rdzv-id --nnodes=1 PROBE"),
    Case("argparse: a number is a value", "--role -1 PROBE", long=True),
    Case("argparse: letters together", "-mt3 --log-dir=logs probe out=o"),
    Case("argparse: -- before the program", "--nproc-per-node 2 -- PROBE --x", long=True),
    Case("argparse: -- after the program", "PROBE -- --x"),
    Case("argparse: unknown", "--bogus=1 PROBE", long=True),
    Case("argparse: no program", "--nproc-per-node=2", long=True),
    Case("argparse: a flag with a value", "--standalone=1 PROBE", long=True),
    Case("argparse: no whole number", "--max-restarts=1.5 PROBE", long=True),
    Case("PET_: each option", "PET_NPROC_PER_NODE=2 PET_REDIRECTS=1 PET_TEE=1 PET_LOG_DIR=logs PET_DUPLICATE_STDOUT_FILTERS=two "
         "PET_LOG_LINE_PREFIX_TEMPLATE='<${rank}>' PET_LOCAL_RANKS_FILTER=1 PET_ROLE=r PET_MAX_RESTARTS=2 "
         "PET_SIGNALS_TO_HANDLE=SIGTERM PET_SHUTDOWN_TIMEOUT=3 PET_EVENT_LOG_HANDLER=null PET_LOCAL_ADDR=127.0.0.1 "
         "PET_RDZV_CONF=a=b PET_MONITOR_INTERVAL=1 PET_STANDALONE=1 PET_VIRTUAL_LOCAL_RANK=1 PROBE out=two err=e out=three",
         differs={r"^file logs/.*/0/stderr.log$": "what is not shown is kept where there is a log folder"}),
    Case("PET_: nodes", "PET_NNODES=1 PET_NODE_RANK=0 PET_MASTER_ADDR=localhost PET_MASTER_PORT={port} PROBE", long=True),
    Case("PET_: where nodes meet", "PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=localhost:0 PET_RDZV_ID=7 PROBE", long=True),
    Case("PET_: programs", "PET_RUN_PATH=1 PROBE", differs=NEW_PROCESS, long=True),
    Case("PET_: what has none", "PET_NUMA_BINDING=node PET_LOGS_SPECS=nosuch PET_USE_ENV=1 PROBE"),
    Case("PET_: a flag's is a number", "PET_MODULE=true PROBE"),
    Case("PET_: empty", "PET_STANDALONE= PET_MAX_RESTARTS= PROBE", long=True,
         differs=lenient("an empty variable counts as not set: manifests have such")),
    Case("DESIGN: --event-log-handler", "--event-log-handler=console PROBE", long=True,
         differs=refused("others than null are Python's log handlers")),
    Case("DESIGN: --numa-binding", "CUDA_VISIBLE_DEVICES= --numa-binding=node PROBE", long=True),
]
