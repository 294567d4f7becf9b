package world

import "slices"

// regions are those that every account has, and optIn those that it asks for. The
// emulator's accounts have asked for all.
var (
	regions = []string{
		"us-east-1", "us-east-2", "us-west-1", "us-west-2",
		"ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-southeast-1", "ap-southeast-2",
		"ca-central-1", "eu-central-1", "eu-north-1", "eu-west-1", "eu-west-2", "eu-west-3", "sa-east-1",
		"cn-north-1", "cn-northwest-1", "us-gov-east-1", "us-gov-west-1",
	}
	optIn = []string{
		"af-south-1", "ap-east-1", "ap-east-2", "ap-south-2",
		"ap-southeast-3", "ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7",
		"ca-west-1", "eu-central-2", "eu-south-1", "eu-south-2", "il-central-1", "me-central-1", "me-south-1", "mx-central-1",
	}
)

// RegionsOf are the regions of a partition (aws, aws-cn, aws-us-gov), sorted.
func RegionsOf(partition string) []string {
	var out []string
	for _, name := range append(slices.Clone(regions), optIn...) {
		if Partition(name) == partition {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// OptIn is a region's opt-in status.
func OptIn(name string) string {
	if slices.Contains(optIn, name) {
		return "opted-in"
	}
	return "opt-in-not-required"
}
