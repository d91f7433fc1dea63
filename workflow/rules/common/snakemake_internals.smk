"""All that is asked of Snakemake beside what its documentation promises, each with its reason.

Another version may call these things otherwise, so versions that were not tried are refused; a test of its own
(tests/workflow/test_snakemake_internals.py) says for each whether it still is what it is taken for.
"""

import sys

from packaging.version import Version
from snakemake import __version__ as SNAKEMAKE_VERSION
from snakemake.exceptions import WorkflowError
from snakemake.sourcecache import LocalSourceFile

FIRST_UNTRIED_VERSION = "9.28"

if Version(SNAKEMAKE_VERSION) >= Version(FIRST_UNTRIED_VERSION):
    raise WorkflowError(
        f"this workflow was not tried with Snakemake {SNAKEMAKE_VERSION}; "
        f"install one before {FIRST_UNTRIED_VERSION}: pip install 'snakemake<{FIRST_UNTRIED_VERSION}'"
    )

# `workflow` changes its answers while it reads a module; what is asked later must be of the time of reading.
_PATHVARS, _PATHS = workflow.pathvars, workflow.modifier.path_modifier


def folder_that_asks():
    """The folder of the file that asks, and the repository and revision that it is read from if it is not on disk.

    `workflow.source_path` would copy single files, but scripts need the whole library.
    """
    source = workflow.current_basedir
    if isinstance(source, LocalSourceFile):
        return str(source), None, None
    if hasattr(source, "hosted_repo"):  # github(...), gitlab(...)
        return source.path, source.hosted_repo.repo_clone, source.ref
    if hasattr(source, "repo_path"):  # gitfile(...)
        return source.path, source.repo_path, source.ref
    raise WorkflowError(
        f"{source} is no file of a repository; name this workflow by github(...), gitlab(...), gitfile(...) or a path"
    )


def own_path(path):
    """A path as Snakemake writes it in inputs and outputs: with its path variables, and a module's prefix.

    For downloads that other runs may share. They are no outputs of rules, since Snakemake removes the outputs of
    a job that fails and touches those of one that does not; small receipts in <results> stand for them.
    """
    return str(_PATHS.modify(_PATHVARS.apply(path)))


def path_variable(name):
    """What a path variable is set to, by this workflow or by who uses it."""
    return _PATHVARS.get(name)


def configuration_files():
    """The files of `--configfile` and of `configfile:`, which Snakemake has merged into `config`."""
    return [Path(str(file)) for file in workflow.configfiles]


def at_start(*functions):
    """Call functions as a run starts, like `onstart`, which Snakemake leaves out of modules."""
    earlier = workflow._onstart

    def start(log):
        earlier(log)
        for function in functions:
            function()

    workflow._onstart = start


def is_main_process():
    """Whether this is the Snakemake that the user started, and no job's own."""
    return workflow.is_main_process


def makes_report():
    """Whether nothing is to be run, but a report to be made of what was; a workflow cannot ask for it."""
    return any(each.partition("=")[0] in ("--report", "--reporter") for each in sys.argv)


def submits_jobs():
    """Whether jobs go to a cluster: `--jobs`, which Snakemake calls nodes, is given only there."""
    return workflow.resource_settings.nodes is not None


def limits_resources():
    """Whether the command line or a profile limits a resource other than cores."""
    return bool(workflow.global_resources.keys() - {"_cores", "_nodes"})


def set_by_profile(rule, resource):
    """What a profile or the command line sets a rule's resource to; None if neither does."""
    overwritten = workflow.resource_settings.overwrite_resources.get(rule, {})
    return overwritten[resource].raw if resource in overwritten else None


def executor():
    """Name of what runs the jobs, such as `local` or `slurm`; known once the run starts."""
    return workflow.executor_plugin.name


def asks_squeue():
    """Whether the SLURM plugin looks for jobs by `squeue`, which forgets them."""
    return workflow.executor_settings.status_command == "squeue"


def let_the_scheduler_rest():
    """Take out the limit on jobs per second, which makes long runs slower and slower.

    With it, Snakemake 9.27 schedules a wake-up one second later at each wake-up, so that every job that
    ends adds one more look at all ready jobs per second for the rest of the run. `--jobs` and `--cores`
    limit what runs at a time.
    """
    workflow.scheduler.job_rate_limiter = None


def escape_paths_of_environments():
    """Let conda files be in a folder whose path holds braces: Snakemake fills wildcards into the whole path."""
    for each in workflow.rules:
        folder = str(each.basedir)
        if re.search("[{}]", folder) and Path(folder).is_relative_to(WORKFLOW):
            each.basedir = LocalSourceFile(re.sub("([{}])", r"\1\1", folder))


def make_default(rule):
    """Set the default target, which a file that includes another does not take over from it."""
    workflow.default_target = rule
