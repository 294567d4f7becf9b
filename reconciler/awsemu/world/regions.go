package world

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// partitions has a line for each partition of AWS: its id, the suffixes of its hosts' names, the
// form of its regions' names, and its regions. The generator of weir's own table writes it.
//
//go:embed partitions.txt
var partitions string

// partition is one partition.
type partition struct {
	id, suffix string
	form       *regexp.Regexp
	regions    []string
}

var partitionTable = sync.OnceValue(func() []partition {
	var out []partition
	for line := range strings.Lines(partitions) {
		words := strings.Fields(line)
		out = append(out, partition{id: words[0], suffix: words[1], form: regexp.MustCompile(words[3]), regions: words[4:]})
	}
	return out
})

// optIn lists the regions that an account must enable. The emulator's accounts have enabled all.
var optIn = []string{
	"af-south-1", "ap-east-1", "ap-east-2", "ap-south-2",
	"ap-southeast-3", "ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7",
	"ca-west-1", "eu-central-2", "eu-south-1", "eu-south-2", "il-central-1", "me-central-1", "me-south-1", "mx-central-1",
}

// partitionOf returns the partition of a region. If the region's name fits no partition, it returns the
// first one, aws.
func partitionOf(region string) partition {
	all := partitionTable()
	for _, p := range all {
		if p.form.MatchString(region) {
			return p
		}
	}
	return all[0]
}

// Partition returns the id of a region's AWS partition.
func Partition(region string) string { return partitionOf(region).id }

// DNSSuffix returns the suffix of a region's host names.
func DNSSuffix(region string) string { return partitionOf(region).suffix }

// RegionsOf returns the regions of a partition, sorted.
func RegionsOf(id string) []string {
	for _, p := range partitionTable() {
		if p.id == id {
			return slices.Clone(p.regions)
		}
	}
	return nil
}

// OptIn returns a region's opt-in status.
func OptIn(name string) string {
	if slices.Contains(optIn, name) {
		return "opted-in"
	}
	return "opt-in-not-required"
}
