// Package plan decides what to do: from intents, answers and observed state it
// computes the steps that make AWS what Git says.
//
// It is pure: no context, no clock, no SDK, no logger. The same functions serve
// `weir plan`, the comment on a pull request, drift detection and the apply, so they
// cannot disagree, and a property test may plan a million fleets.
//
// # Terms
//
// An intent holds what Git wants of a pool. An answer holds what only AWS knows of it (an
// image, subnets). Package observed describes the resources in AWS. From these, Compute
// makes a Plan: steps in the order in which they run within a pool, and diagnostics. Where
// it lacks a fact (a wanted name that the read by owner tag did not return, the body of a
// template version) it returns Needs beside the plan; the caller reads those and computes
// again. A step (package step) is one request to AWS with its reasons. A step is held where
// something outside of Git and AWS says "not now": a window, an earlier target, a
// suspension, a limit. A held step stays in the plan with its cause.
//
// # How a plan is made
//
// Compute plans shared templates, then pools, then orphans, by packages template, group,
// nodegroup and orphan. Each of them gives a Result (package model): steps, needs,
// diagnostics, and whether the pool is blocked. A part that may turn out unwanted begins
// with Fork, and is taken or dropped as a whole, so nothing is ever taken back. What a
// planner learns about the pool itself (its image, the refresh that it waits for) it writes
// into the pool's PoolPlan (package model), and the plan keeps these. Gates hold
// steps of the finished plan (gating.go) and change nothing else of them. The digest
// (digest.go) stands for exactly the work to do, so that an approval allows that work and
// no other.
//
// A desired state is complete: weir copies the settings that it does not own from the
// observed state before it compares the two. So every difference is work to do, and the
// settings of others (foreign tags, hooks, suspended processes) never differ.
//
// # Whose a resource is
//
// weir changes only resources that carry its tags. The tags in AWS are the only record:
// weir keeps no state file that could be lost, or be wrong.
//
//  1. A resource belongs to the instance that weir.dev/owner names, for one of its
//     sources and one of its targets (Policy.Owns in package model). weir knows no owner
//     of a resource without the tag, and never touches it: if its name is wanted, the
//     diagnostic is "conflict", and the pool waits.
//  2. Another target of the same instance gives a resource up when it no longer wants it.
//     weir can see that only while every target of the account and region renders whole
//     and the configuration says where it applies the other target; else the resource
//     stays where it is.
//  3. weir adopts the resources of another tool or instance only on request: by the annotation
//     weir.dev/adopt or with weir adopt (basis.Adoption). An adoption writes all tags in one call
//     and nothing else. weir never adopts resources of CloudFormation, Karpenter, EKS or another
//     cluster: those would go on changing them.
//  4. Where an adopted resource differs from Git, it stays so until a person decides
//     (adopt_rollout.go in package model). The tag weir.dev/adopted on the resource
//     records that, and a step right before the first rollout removes it.
//  5. Before weir writes a pool, it compares the commit that the pool's resources name with the
//     commit that it follows (fence.go): a process that fell behind must not undo the work of a
//     newer commit. weir also stops rolling a pool that somebody puts back every time (contest.go in
//     package model).
//  6. A resource that carries the tags and that no pool wants is an orphan (package
//     orphan). weir deletes it only where pruning is on, weir.dev/prune does not forbid
//     it, all renders of the account and region are whole, and no more go at once than the
//     target's limit.
//  7. The adapter asks once more. A creation that AWS answers with "exists already" is
//     done only where all owner tags are those of the request (claimOf in package
//     awscloud): between the read and the write, another may have been quicker.
package plan
