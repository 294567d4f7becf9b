// Package read is each read of AWS that observing and filling make, as weir's values. It
// decides nothing, and remembers only what the same bytes were read as. It knows the pages
// of a list, the batches that a request takes, and what AWS leaves out of an answer; and
// AWS's ways to say that something is not there, which is an answer here and no error.
//
// # Two ways to read an answer
//
// The pages of groups and of templates are most of what a pass computes, so a scanner
// reads them straight into weir's values (scan.go and its neighbours, over package
// xmlscan): the SDK's general decoding takes several times as long. An element that the
// scanner does not understand is an error, for a page that is half understood would
// look as if groups were gone. Everything else the SDK decodes, and package convert
// takes it over.
package read

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// Reader reads one account and region.
type Reader struct {
	EC2         EC2Calls
	AutoScaling AutoScalingCalls
	EKS         EKSCalls
	CloudWatch  CloudWatchCalls
	Now         func() time.Time
	Clock       func() time.Time // compared with times that AWS tells

	// owned holds the values read from the instance's own lists of each pass.
	owned struct {
		groups    known[observed.Group]
		templates known[observed.Template]
	}
}

// Page sizes and batch sizes are the largest that the APIs take.
const (
	groupsPage    = 100 // DescribeAutoScalingGroups: MaxRecords, and names in a request
	templatesPage = 200 // DescribeLaunchTemplates: MaxResults
	filterValues  = 200 // values of one EC2 filter
	// VersionsPage is that of DescribeLaunchTemplateVersions, and the most versions that
	// one call may name.
	VersionsPage  = 200
	instancesPage = 1000 // DescribeInstances
	namesPage     = 100  // of EKS's lists
)
