"""Write docs/checkpoints.md from the table of `make bench TABLE=verdicts`: `make docs/checkpoints.md`."""

import sys

from benchmarks.results import RESULTS, Results
from benchmarks.simulated_curves import HIGHEST_SPIKE, LONG_ENOUGH, LONGEST, SHORTEST, SHOWN_BY
from benchmarks.tables.verdicts import CLEAN, FAULTY

from shape_of_learning.checkpoints.sanity import HIGHEST, SUSPICIOUS_RATIO
from shape_of_learning.checkpoints.tensor_evidence import DIFFERENT_LOSSES

PAGE = """\
# Verdicts on checkpoints

Published training checkpoints are often not what their names say. Each gets a verdict, from evidence: before
anything is downloaded from the hashes that the Hub lists (`results/checkpoints/{{model}}.csv`), and after all
checkpoints of a model have been measured from their tensors and losses
(`results/tables/verdicts/{{model}}.csv`). Figures show what is `ok`; `bad_checkpoints` decides what becomes
of the rest.

## The evidence

1. *Tensors.* Training changes weights, so two steps whose tensors are equal by name, type, shape and bytes
   are one, however their files were written. One format may leave out a tied tensor or hold a mask; the
   others decide.
2. *Hashes of files* tell the same without a download, but only if the files were not written anew. A hash
   that is not known equals nothing. The main branch of a repository is always listed, so a copy of the
   published model is found whichever steps a run asks for.
3. *Reports*, `known_bad` in a model's entry, with their source. One with `because` is believed. One with
   `same_as` is confirmed by equal hashes, tensors or losses, and refuted by different tensors, or by losses
   more than {different} nats apart; different files refute nothing. While the step that it names is there to
   be compared, both are measured and the verdict ends in `not yet confirmed`; if it is not there, the report
   is believed.
4. *Losses.* All checkpoints of a model see the same windows. Where tensors are not known or were converted to
   another type, losses that are equal to the last bit show the same weights. And a loss that a training
   cannot have at its step shows wrong ones. An infinite loss comes first: such a step is `broken`,
   whosesoever its tensors are, and these convict no other.

## Whose weights they are

Hashes and tensors show that steps are equal, not whose weights they hold. The last step of training keeps its
name (`training.last_step`; where that is not stated, the last step of a rule such as `log`, the last one on
the disk of a `path`, or the latest one if it is the repository's main branch) unless a report says otherwise.
A report with `same_as` names the owner. Where nothing tells, none of them is ok: `same weights in steps
101000, 175000 and 300000; nothing tells whose they are`. No other step than the last may hold the weights of
main, if the last step is in main's repository.

A shard or matrix that several steps share is judged by how it changes along the training:

| what is seen | what is said |
|---|---|
| it is the same in all steps | frozen: nothing |
| only two steps are known, and share it | nothing, since it may be frozen |
| it changes at half of the steps or more, and the first ones in a row share it | not yet moved: nothing |
| likewise, and the last three or more known ones in a row share it | moves no more: nothing |
| it changes at half of the steps or more, and others share it | `mixed shards` or `mixed tensors` |
| it mostly stays, and one step differs from equal ones before and after it | that step is the wrong one |

A shared part belongs to the last step or to main, if that has it, and to the steps in a row before it; then
only the others are mixed. Of main only files count that a step holds too, since main may be written anew.
Otherwise nothing tells whose it is, and all that share it are. Tensors of one dimension are not judged so:
rounded to 16 bits, a norm may stay or return. What is misplaced must be 1 % of all elements.

## What a loss can be

A curve that never rises is fitted to the losses by weighted least absolute deviations (isotonic regression),
so that distance counts and not the number of votes: a loss above the curve costs its distance, half of it
where the model does worse than guessing, and one below it 1.5 times its distance, or 3 times where no later
loss is as low, for then it cannot be that of a later step. A checkpoint whose perplexity is more than
{ratio:.0f} times off the curve is `broken`. So spikes of {spike:.0f} nats, slow starts, overshoots and starts
with large logits are not. Losses count up to {highest:.0f} nats above guessing, so that none outweighs all
others. Step 0 is `broken`, too, if it does better than guessing by more than a nat and later steps are that
many times worse, as many as come before the first of them; one that starts a fine-tuning from a trained model
is not. Two steps are `exchanged` if they stand out, one below and one above the three or more steps between
them, and fit once they change places.

## What cannot be found

- Weights of a step that is not in the plan, if they are not main's and their loss fits: those of a neighbour.
  Only a report helps.
- Copies that were rounded to a narrower type: neither bytes nor loss are equal any more.
- A copy of main whose files were written anew, where the last step is not in the plan.
- A broken checkpoint where nothing better has come before it: a model that only guesses, in a slow start.
- Exchanged steps whose losses are those of neighbours, or that look like a spike.
- Which of two equal steps is right, without a report.
- Parts shared by the first steps of a plan, in a row: they may not have moved yet. Parts shared by the last
  ones, in a row: they may move no more.
- A training that diverged for good: its steps look as broken ones do, and are called so as long as they weigh
  less than those before; then those before are. An entry's `steps` can leave either out.
- A training that stood still, with all its weights: its last steps look like copies of each other.
- Whether step 0 is a trained model under a wrong name or the start of a fine-tuning, where few steps follow.

## Measured

`make bench TABLE=verdicts` simulates {curves:,} trainings without a mistake and as many with some, of
{shortest} to {longest} checkpoints, whole or in shards, with and without frozen layers, a known last step, a
main branch, steps in which 16 bits do not move, layers that freeze late (in those of {long_enough} or more),
slow starts, large logits, overshoots and spikes. `benchmarks/simulated_curves.py` says how. Each mistake is
planted at random steps, several in one curve.

| mistake | shown by | planted | found | missed |
|---|---|---:|---:|---:|
{kinds}

| | curves | checkpoints | false alarms | curves with one |
|---|---:|---:|---:|---:|
{curves_table}

A false alarm is a verdict against a checkpoint that is what its name says. Beside these, {copied:,} sound
checkpoints were condemned together with their copies, since nothing told which of the two was right. False
alarms occur only beside real mistakes: where a wrong step makes its sound neighbours' shared parts look
misplaced, or where of two exchanged pairs the wrong two are named. Of the mistakes that losses show, those
that are missed have another mistake or a spike beside them; those without an entry under "shown by" are found
by chance only, where the loss is off.
"""


def row(*cells: object) -> str:
    """One line of a table."""
    return (
        f"| {' | '.join(f'{each:,}' if isinstance(each, int) else str(each) for each in cells)} |"
    )


def page() -> str:
    """The whole page."""
    results = Results.read(RESULTS / "verdicts.csv")
    by_name = {each.contender: each for each in results.rows}
    kinds = []
    for kind, shown_by in SHOWN_BY.items():
        planted, found = (int(by_name[kind].values[key]) for key in ("planted", "found"))
        kinds.append(row(kind, shown_by, planted, found, planted - found))
    columns = ("curves", "steps", "false alarms", "curves with one")
    curves = [
        row(name, *(int(by_name[name].values[key]) for key in columns)) for name in (CLEAN, FAULTY)
    ]
    return PAGE.format(
        different=DIFFERENT_LOSSES,
        ratio=SUSPICIOUS_RATIO,
        highest=HIGHEST,
        spike=HIGHEST_SPIKE,
        curves=int(by_name[CLEAN].values["curves"]),
        shortest=SHORTEST,
        long_enough=LONG_ENOUGH,
        longest=LONGEST,
        kinds="\n".join(kinds),
        curves_table="\n".join(curves),
        copied=int(by_name[FAULTY].values["condemned with a copy"]),
    )


if __name__ == "__main__":
    sys.stdout.write(page())
