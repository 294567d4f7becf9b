// Package read makes the reads for observing and filling, and returns weir's values. It decides nothing, and
// remembers only the values that equal bytes resulted in. It handles pages of lists, batches of requests,
// omissions in answers, and AWS's various ways to report a missing resource, which is an answer here and no
// error.
//
// # Two ways to read an answer
//
// Decoding the pages of groups and templates is most of the work of a pass, so a scanner reads them directly
// into weir's values (scan.go and the files beside it, with package xmlscan). The SDK's general decoder
// takes several times as long. An element that the scanner does not understand is an error, because groups
// would seem to be missing otherwise. The SDK decodes all other answers, and package convert converts them.
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
	Clock       func() time.Time // compared with the times in AWS's answers

	// owned remembers the values in the lists of the instance's own resources.
	owned struct {
		groups    known[observed.Group]
		templates known[observed.Template]
	}
}

// The page and batch sizes are the maximum that the APIs accept.
const (
	groupsPage    = 100 // DescribeAutoScalingGroups: MaxRecords, and names in a request
	templatesPage = 200 // DescribeLaunchTemplates: MaxResults
	filterValues  = 200 // values of one EC2 filter
	// VersionsPage is the page size of DescribeLaunchTemplateVersions, and the maximum number of versions in
	// one call.
	VersionsPage  = 200
	instancesPage = 1000 // DescribeInstances
	namesPage     = 100  // of EKS's lists
)
