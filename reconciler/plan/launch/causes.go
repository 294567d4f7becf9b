// Package launch explains why machines of a pool do not start: AWS's causes, each with a hint how
// to fix it, and what starting machines wait for.
package launch

import (
	"regexp"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Cause is a reason for which AWS starts no machine, with a hint how to fix it.
type Cause struct {
	// Code is AWS's error code, which occurs in its text only if Auto Scaling requested a fleet.
	// Text is AWS's text without numbers and names.
	Code, Text string
	Hint       string
	// pattern matches texts that show the cause.
	pattern *lazyregexp.Regexp
}

// newCause returns a cause. codes contains its code, or several of the same meaning. In AWS's text,
// … stands for variable parts.
func newCause(codes, text, hint string) Cause {
	code, _, _ := strings.Cut(codes, "|")
	words := strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".{1,200}?")
	return Cause{Code: code, Text: text, Hint: hint, pattern: lazyregexp.New(`\b(?:` + strings.ReplaceAll(codes, ".", `\.`) + `)\b|(?i:` + words + `)`)}
}

const keyHint = "the role AWSServiceRoleForAutoScaling may not use the KMS key of a volume, which is named by the pool, by the image's snapshot or by the account's default encryption, " +
	"or the key is disabled or about to be deleted: enable it, and let its policy allow that role kms:CreateGrant, kms:Decrypt, kms:DescribeKey, kms:Encrypt, kms:GenerateDataKey* and kms:ReEncrypt*; " +
	"for a key of another account make a grant (aws kms create-grant --grantee-principal, the role's ARN)"

const capacityHint = "EC2 has no spare capacity of the instance types that the pool names, in the zones of its subnets: name further types in mixedInstancesPolicy.overrides " +
	"or subnets in further zones, or run part of the pool On-Demand. AWS keeps trying"

const verifyHint = "AWS is verifying the account, or its first use of the region, and starts no machines until it has sent an email, usually within some hours; if it takes longer, write to aws-verification@amazon.com"

const unsupportedHint = "the zone does not have the instance type, or the type does not support the pool's options: name other types, or subnets in zones that have it (aws ec2 describe-instance-type-offerings --location-type availability-zone)"

// launchCauses lists the causes in the order of the search: the more specific cause comes first.
// Sources are "Troubleshoot Amazon EC2 Auto Scaling: EC2 instance launch failures" and "Instance
// termination" in AWS's guides, EC2's "Error codes", and texts quoted in issues of other tools.
// Assumed of AWS: metadata-tags-text.
// Assumed of AWS: launch-failure-texts.
var launchCauses = []Cause{
	newCause("InvalidTagKey.Malformed", "is not a valid tag key. Tag keys must match pattern",
		"the launch template or the account's default in the region shows tags in instance metadata "+
			"(aws ec2 get-instance-metadata-defaults), which the keys of the machines' tags do not allow: write instanceMetadataOptions: {instanceMetadataTags: disabled} "+
			"in the pool's awsLaunchTemplate, which overrides the account"),
	newCause("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of … allows",
		"the quota of running vCPUs for this family of instance types is used up: request an increase (Service Quotas, Amazon EC2, Running On-Demand instances), terminate machines, or name a type of another family"),
	newCause("InstanceLimitExceeded", "than your current instance limit of … allows",
		"the account runs as many instances of the type as its quota allows: request an increase (Service Quotas, Amazon EC2), or name another type"),
	newCause("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded",
		"the quota of Spot vCPUs is used up: request an increase (Service Quotas, Amazon EC2, Spot Instance Requests), or run part of the pool On-Demand with mixedInstancesPolicy.instancesDistribution"),
	newCause("SpotMaxPriceTooLow", "is lower than the minimum required Spot request fulfillment price",
		"spotMarketOptions.maxPrice is below the current Spot price: raise it, or remove it, so that the On-Demand price is the limit"),
	newCause("UnfulfillableCapacity", "Unable to fulfill capacity due to your request configuration", capacityHint),
	newCause("UnfulfillableCapacity", "no Spot capacity available", capacityHint),
	newCause("InsufficientInstanceCapacity|InsufficientHostCapacity|InsufficientCapacity|ReservationCapacityExceeded", "We currently do not have sufficient … capacity",
		"EC2 has no such machine free in the zone now: name further types in mixedInstancesPolicy.overrides or subnets in further zones, or reserve capacity; AWS tries again by itself"),
	newCause("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in",
		"a subnet has too few free addresses: free some, or name further subnets"),
	newCause("VolumeLimitExceeded|MaxIOPSLimitExceeded", "Volume limit exceeded",
		"the account's quota of EBS storage or IOPS is used up: request an increase (Service Quotas, Amazon EBS), remove volumes, or make rootVolume smaller"),
	newCause(`InvalidKMSKey.InvalidState|InvalidKMSKey.[A-Za-z.]+`, "The KMS key provided is in an incorrect state", keyHint),
	newCause("Client.InternalError", "Client error on launch", keyHint),
	newCause("InvalidSnapshot.NotFound", "The snapshot '…' does not exist",
		"a snapshot of the image or of a volume is gone, or is not shared with the account: name another image, or share it"),
	newCause("InstanceInitiatedShutdown", "Instance initiated shutdown",
		"the machine shut itself down while it started: look at its bootstrap data, and at the log of cloud-init on it (aws ec2 get-console-output)"),
	newCause("UserInitiatedShutdown", "User initiated shutdown",
		"somebody or some program ended the machine before it was in service: AWS CloudTrail says who (TerminateInstances, StopInstances)"),
	newCause("Server.InternalError", "Internal error on launch",
		"EC2 failed to start the machine, and Auto Scaling tries again; if this continues, name another instance type or zone, and ask AWS's support"),
	newCause("HeartbeatTimeout", "Lifecycle Action with token … was abandoned: Heartbeat Timeout",
		"nothing completed the launching lifecycle hook in time, and its default result is ABANDON: check the program that should complete it (aws autoscaling complete-lifecycle-action), or raise heartbeatTimeout"),
	newCause("LifecycleActionAbandoned", "Lifecycle Action Completed with ABANDON Result",
		"the program that completes the launching lifecycle hook refused the machine: look at its log"),
	newCause("Unsupported|InvalidFleetConfiguration", "is not supported in your requested Availability Zone", unsupportedHint),
	newCause("Unsupported", "The requested configuration is currently not supported", unsupportedHint),
	newCause("InvalidParameterCombination", "The parameter … cannot be used with the parameter",
		"two settings of the launch template cannot be combined for this instance type: the message names them; change one in the pool's awsLaunchTemplate or PoolOptions"),
	newCause("PendingVerification", "request for accessing resources in this region is being validated", verifyHint),
	newCause("PendingVerification", "Your account is currently being verified", verifyHint),
	newCause("OptInRequired", "AWS Marketplace product you need to accept terms and subscribe",
		"the account is not subscribed to what the image or the service needs: accept the terms of the image in AWS Marketplace, or name another image"),
	newCause("InvalidAMIID.NotFound|InvalidAMIID.Unavailable", "The image id '…' does not exist",
		"the image is gone, or is not shared with the account: name another one, or use the default one"),
	newCause("InvalidKeyPair.NotFound", "The key pair '…' does not exist",
		"somebody deleted the key pair: create it again, or change sshKeyName"),
	newCause("InvalidGroup.NotFound", "The security group '…' does not exist",
		"somebody deleted the security group: name another one"),
}

// Causes returns all known causes, for the documentation.
func Causes() []Cause { return launchCauses }

// Hint returns advice about a launch that EC2 refused, "" for an unknown text. message is AWS's
// text in a failed scaling activity or in EKS's health issue.
func Hint(message string) string {
	for _, c := range launchCauses {
		if c.pattern.MatchString(message) {
			return c.Hint
		}
	}
	return ""
}

// The parts of a text that differ between two launches that fail for the same cause.
var (
	awsID   = lazyregexp.New(`\b(i|eni|vol)-[0-9a-f]{8,}\b`)
	tokenID = lazyregexp.New(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	figures = lazyregexp.New(`[0-9]+`)
)

// CauseOf identifies the cause of a failed launch: the code of the first known cause that the text
// shows. For any other text it is the text itself without ids and numbers, so two such texts are
// equal only if they differ in nothing else.
func CauseOf(message string) string {
	for _, c := range launchCauses {
		if c.pattern.MatchString(message) {
			return c.Code
		}
	}
	return figures.ReplaceAllString(plainLaunch(message), "…")
}

// plainLaunch returns AWS's text without the parts that differ at each attempt.
func plainLaunch(message string) string {
	return tokenID.ReplaceAllString(awsID.ReplaceAllString(content.Printable(message), "$1-…"), "…")
}
