// Package awsemu is an emulator of AWS: the parts of EC2, Auto Scaling, EKS, SSM, KMS, DynamoDB, STS, IAM,
// Elastic Load Balancing, CloudWatch and Service Quotas that a controller of machine pools uses. It is one
// HTTP handler that speaks the services' own wire protocols with unmodified SDKs and the AWS CLI.
//
// It emulates behavior, not only answers. Launch templates have immutable versions and quotas, instances and
// nodegroups pass through their states on an injected [Clock], pages end in opaque tokens, client tokens are
// remembered, and requests can be throttled like in AWS. [Faults] scripts failures of networks and clouds.
// The emulator refuses an unknown action, parameter, filter or header in the error format of the called
// service.
//
// # It imitates AWS, not its callers
//
// The emulator imports nothing of the program that is tested with it. AWS's own service models (package
// model) define which requests AWS accepts. AWS's documentation and observations define their effects, which
// the services implement. So a wrong assumption of the program about a field cannot be hidden by the same
// wrong assumption here.
//
// # Packages
//
// This package is the front end. It takes a request, finds its service and its region, applies
// faults and throttling, runs the operation and records the call. It also saves and loads the
// state. All other code is in packages below. Each imports only packages that are listed before it:
//
//   - world: shared by the services of a region: time, ids, timers, quotas, tags
//   - model: AWS's service models, and the check of requests and answers against them
//   - wire: the protocols: operations, forms and JSON, XML, errors, pages
//   - quotas (the region's), elb (target groups), dynamodb; below it attr, for values,
//     and expression
//   - iam, kms, ssm (names keys of kms), sts (leads into accounts of iam)
//   - ec2: uses instance profiles of iam, image parameters of ssm and volume keys of kms
//   - cloudwatch (alarms)
//   - asg: launches instances of ec2, ends refreshes by alarms; below it policy and schedule, for
//     scaling policies and scheduled actions
//   - eks: makes its nodes with ec2, asg and iam
//
// The type Region of a package is its part of one account's region. Exported fields are resources and are
// saved. Unexported fields refer to other packages' parts, and are set when a region is made or loaded.
// Every operation runs alone, under the server's lock, so the packages have no locks of their own; only
// faults are armed from outside. A failed operation changes nothing.
//
// # Accounts and regions
//
// State is kept per account and region, and a region gets default resources on first use (see [Server.Seed]
// for additions). Signatures are not verified, but a request must have the Authorization header of SigV4,
// because its credential scope names region and service. Every access key belongs to account 000000000000,
// except keys from STS AssumeRole: assuming arn:aws:iam::123456789012:role/any leads into account
// 123456789012, where any role name is accepted. In account 000000000000 only the seeded roles exist.
//
// # Time
//
// Nothing sleeps, and no goroutine works in the background. Later changes are data, ordered by due time.
// Each request first makes all changes that are due by the clock's time. A test uses a [ManualClock]. A
// long-lived emulator sets no clock and uses the real one.
package awsemu
