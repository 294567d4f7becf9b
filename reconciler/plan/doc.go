// Package plan is the planner: from intents, answers and observed state it computes the steps that
// make AWS match Git.
//
// It is pure: no context, no clock, no SDK, no logger. The same functions serve `weir plan`, the
// comment on a pull request, drift detection and the apply. So these cannot disagree, and a
// property test can plan a million fleets.
//
// # Terms
//
// An intent is the desired state of a pool in Git. An answer is AWS's answer to a lookup, such as
// an image id or subnets. Package observed describes the resources in AWS. From these, Compute
// makes a Plan: diagnostics, and steps in the order in which they run within a pool. If a fact is
// missing (a resource with a wanted name that the read by owner tag did not return, or the content
// of a template version), Compute returns Needs beside the plan. The caller reads these facts and
// computes again. A step (package step) is one request to AWS with its reasons. A step is held if
// something outside of Git and AWS says "not now": a window, an earlier target, a suspension, a
// limit. A held step stays in the plan with the cause of the hold.
//
// # How a plan is made
//
// Compute plans shared templates, then pools, then orphans, with packages template, group,
// nodegroup and orphan. Each of them returns a Result (package model): steps, needs, diagnostics,
// and whether the pool is blocked. A part that may turn out unwanted starts with Fork, and is taken
// or dropped as a whole, so no planner ever undoes anything. A planner writes facts about the pool
// itself (its image, the refresh that it waits for) into the pool's PoolPlan (package model), and
// the plan keeps these. Gates hold steps of the finished plan (gating.go) and change nothing else
// in them. The digest (digest.go) identifies exactly the work to do, so an approval allows that
// work and no other.
//
// A desired state is complete: weir copies the settings that it does not own from the observed
// state before it compares the two. So every difference is work to do, and settings of other owners
// (foreign tags, hooks, suspended processes) never differ.
//
// # Who owns a resource
//
// The tags of a resource in AWS are the only record of its owner, and weir changes only resources
// that carry its own tags. There is no state file that could be lost or be wrong.
//
//  1. A resource belongs to the instance that weir.dev/owner names, for one of its
//     sources and one of its targets (Policy.Owns in package model). A resource without
//     that tag has no owner, and weir never touches it: if a pool needs its name, the
//     diagnostic is "conflict", and the pool waits.
//  2. Another target of the same instance gives a resource up when it no longer wants it.
//     weir can see that only if every target of the account and region renders completely,
//     and the configuration gives the other target's account and region. Otherwise the
//     resource stays that target's.
//  3. weir adopts the resources of another tool or instance only on request: by the
//     annotation weir.dev/adopt or with weir adopt (Adoption in package model). An adoption
//     writes all tags in one call and nothing else. weir never adopts resources of
//     CloudFormation, Karpenter, EKS or another cluster, because those would go on changing
//     them.
//  4. If an adopted resource differs from Git, it stays so until a person decides
//     (adopt_rollout.go in package model). The tag weir.dev/adopted on the resource
//     records that, and a step right before the first rollout removes it.
//  5. Before weir writes a pool, it compares the commit that the pool's resources name with
//     the commit that it follows (fence.go): a process that fell behind must not undo the
//     work of a newer commit. weir also stops rolling a pool if somebody undoes every
//     rollout (contest.go in package model).
//  6. A resource that carries the tags and that no pool wants is an orphan (package
//     orphan). weir deletes it only if pruning is on, weir.dev/prune does not forbid it, all
//     renders of the account and region are complete, and the number of deletions is within
//     the target's limit.
//  7. The adapter checks again. If AWS answers a creation with "exists already", the step
//     has succeeded only if all owner tags match the request (claimOf in package
//     awscloud): another writer may have been quicker between the read and the write.
package plan
