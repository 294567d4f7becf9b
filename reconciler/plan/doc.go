// Package plan decides what to do: from intents, answers and observed state it
// computes the steps that make AWS what Git says.
//
// It is pure: no context, no clock, no SDK, no logger. The same functions serve
// `weir plan`, the comment on a pull request, drift detection and the apply, so they
// cannot disagree, and a property test may plan a million fleets.
//
// # Terms
//
// An intent holds what Git wants of a pool, an answer what only AWS knows of it (an
// image, subnets), and package observed the resources in AWS. Compute makes a Plan of
// them: steps in the order in which they run within a pool, and diagnostics. Where it
// lacks something (a wanted name that the read by owner tag did not return, the body of
// a template version) it returns Needs beside the plan; the caller reads those and
// computes again. A step (package step) is one request to AWS with its reasons. It is
// held where something outside of Git and AWS says "not now": a window, an earlier
// target, a suspension, a limit. A held step stays in the plan with its cause.
//
// # How a plan is made
//
// Compute plans shared templates, then pools, then what nothing wants any more, by packages
// template, group, nodegroup and orphan. Each of them gives a Result (package basis):
// steps, needs, diagnostics, and whether the pool is blocked. A part that may turn out
// unwanted is begun with Fork and taken or left as a whole, so nothing is ever taken back.
// Gates hold steps of the finished plan (holds.go), and change no step but in that it is
// held; the digest (digest.go) is of what would be done, so that an approval holds for that
// and nothing else.
//
// Desired is total. What weir does not own is copied from the observed state before the
// two are compared, so a difference is always something to do, and the settings of
// others (foreign tags, hooks, suspended processes) make no difference.
//
// # Whose a resource is
//
// weir changes what carries its tags and nothing else. The tags in AWS are the only
// record: there is no state file that could be lost, or be wrong.
//
//  1. A resource belongs to the instance that weir.dev/owner names, for one of its
//     sources and one of its targets (Policy.Owns in package basis). Without the tag it is
//     no one's that weir knows, and weir never touches it: a name that is taken is the
//     diagnostic "conflict", and its pool waits.
//  2. Another target of the same instance gives a resource up by not wanting it any
//     more. That can be said only while every target of the account and region renders
//     whole and names it there; else the resource stays where it is.
//  3. A person asks to take over what another tool or instance owns, by the
//     annotation weir.dev/adopt or with weir adopt (basis.Adoption). It writes all
//     tags in one call and nothing else. What CloudFormation, Karpenter, EKS or another
//     cluster have is not taken over at all: they would go on changing it.
//  4. What an adopted resource has otherwise than Git wants stays until it is decided
//     (adopt_rollout.go in package basis). weir.dev/adopted on the resource is the record of that, and
//     goes in a step right before the first rollout.
//  5. Before a pool is written, the commit that its resources name is compared with the
//     one that is followed (fence.go): a process that fell behind must not undo what a
//     newer commit has made. Nor is a pool rolled for ever against somebody who puts it
//     back each time (contest.go in package basis).
//  6. What has the tags and nothing wants is an orphan (package orphan). It is deleted only
//     where pruning is on, weir.dev/prune does not forbid it, all renders of the account
//     and region are whole, and no more go at once than the target's limit.
//  7. The adapter asks once more. A creation that AWS answers with "exists already"
//     counts as done only where all owner tags are those of the request (claimOf in
//     package awscloud): between observing and writing, somebody else may have been
//     quicker.
package plan
