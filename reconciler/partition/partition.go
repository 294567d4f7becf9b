// Package partition describes AWS's partitions: separate parts of AWS with their own accounts, names and
// hosts, such as aws-cn, aws-iso and aws-eusc. Its table comes from the AWS SDK.
package partition

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:generate go run generate.go

//go:embed table.txt
var table string

// Partition is one partition.
type Partition struct {
	// ID is the second part of ARNs, such as aws.
	ID string
	// DNSSuffix and DualStackSuffix are suffixes of host names, such as amazonaws.com and api.aws.
	DNSSuffix, DualStackSuffix string
	// Regions lists the regions at the time of this release, sorted.
	Regions []string

	region *regexp.Regexp
}

// usual is the partition of a region that matches no other one.
const usual = "aws"

// All returns all partitions.
var All = sync.OnceValue(func() []Partition {
	var out []Partition
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		out = append(out, Partition{ID: words[0], DNSSuffix: words[1], DualStackSuffix: words[2], region: regexp.MustCompile(words[3]), Regions: words[4:]})
	}
	return out
})

// Of returns the partition of a region, by its name's form if the region is newer than this
// release.
func Of(region string) Partition {
	all := All()
	for _, match := range []func(Partition) bool{
		func(p Partition) bool { return slices.Contains(p.Regions, region) },
		func(p Partition) bool { return p.region.MatchString(region) },
		func(p Partition) bool { return p.ID == usual },
	} {
		if i := slices.IndexFunc(all, match); i >= 0 {
			return all[i]
		}
	}
	return Partition{ID: usual}
}

// Named returns the partition with an id.
func Named(id string) (Partition, bool) {
	i := slices.IndexFunc(All(), func(p Partition) bool { return p.ID == id })
	if i < 0 {
		return Partition{}, false
	}
	return All()[i], true
}

// Regions returns the regions of all partitions.
func Regions() []string {
	var out []string
	for _, p := range All() {
		out = append(out, p.Regions...)
	}
	return out
}
