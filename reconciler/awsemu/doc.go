// Package awsemu is an embedded AWS: the parts of EC2, Auto Scaling, EKS, SSM,
// STS and IAM that a keeper of machine pools talks to, in one HTTP handler that
// speaks the services' own wire protocols to unmodified SDKs and the AWS CLI.
//
// It behaves rather than nods. Launch templates have immutable versions and
// quotas, instances and nodegroups pass through their states on an injected
// [Clock], pages end in opaque tokens, client tokens are remembered, requests
// can be throttled as AWS throttles them, and [Faults] scripts what networks and
// clouds do to a caller. An action, parameter, filter or header that the package
// does not know is refused in the error shape of the service that was asked.
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
// Nothing sleeps and nothing runs by itself. What is due later is data, ordered
// by due time; each request first lets everything happen that is due at the
// clock's time. A test drives a [ManualClock]; a long-lived emulator passes none
// and uses the real one.
package awsemu
