// Package awsemu is an embedded AWS: the parts of EC2, Auto Scaling, EKS, SSM, KMS,
// DynamoDB, STS, IAM, Elastic Load Balancing, CloudWatch and Service Quotas that a keeper
// of machine pools talks to, in one HTTP handler that speaks the services' own wire protocols to
// unmodified SDKs and the AWS CLI.
//
// It does not only answer, it behaves. Launch templates have immutable versions and quotas,
// instances and nodegroups pass through their states on an injected [Clock], pages end in opaque
// tokens, client tokens are remembered, requests can be throttled as AWS throttles them, and
// [Faults] scripts what networks and clouds do to a caller. An action, parameter, filter or header
// that the emulator does not know is refused in the error shape of the called service.
//
// # It imitates AWS, not its callers
//
// The emulator imports nothing of the program that is tested against it. AWS's own service models
// (package model) say what AWS accepts; AWS's documentation and observations say what it does, and
// each service implements its part. So a mistake in the program's idea of a field can never hide
// behind the same mistake here.
//
// # Rooms
//
// This package is the front. It takes a request, finds its service and its region, applies faults
// and throttling, runs the operation and records the call; and it saves and loads the state. All
// other code is in rooms. Each room knows only the rooms named before it:
//
//   - world: what the services of a region share: time, ids, timers, quotas, tags
//   - model: AWS's service models, and the check of requests and answers against them
//   - wire: the protocols: operations, forms and JSON, XML, errors, pages
//   - quotas (the region's), elb (target groups), dynamodb; below it attr, for values,
//     and expression
//   - iam, kms, ssm (names keys of kms), sts (leads into accounts of iam)
//   - ec2: asks iam for instance profiles, ssm for images by parameter and kms for keys of volumes
//   - cloudwatch (alarms)
//   - asg: launches instances of ec2, ends refreshes by alarms; below it policy and schedule, for what moves groups
//   - eks: makes its nodes with ec2, asg and iam
//
// A room's type Region is its part of one account's region: exported fields are resources and are
// saved, unexported ones lead to the parts of other rooms and are connected when a region is made
// or loaded. Every operation runs alone, under the server's lock, so no room has locks of its own;
// only faults are armed from outside. A failed operation changes nothing.
//
// # Accounts and regions
//
// State is kept per account and region, and a region is seeded on first use (see
// [Server.Seed] for additions). Signatures are not verified, but a request must
// carry the Authorization header of SigV4: its credential scope names region and
// service. Every access key belongs to account 000000000000, except those handed
// out by STS AssumeRole: assuming arn:aws:iam::123456789012:role/any leads into
// account 123456789012, where any role name is accepted; in account 000000000000
// only the seeded roles exist.
//
// # Time
//
// Nothing sleeps and no goroutine works in the background. Later work is data, ordered
// by due time; each request first lets everything happen that is due at the clock's
// time. A test drives a [ManualClock]; a long-lived emulator passes none and uses the
// real one.
package awsemu
