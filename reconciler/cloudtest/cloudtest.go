// Package cloudtest is the contract between weir and AWS, as a suite of tests.
// It says what weir relies on, over the wire and with the real SDK clients, and
// it is run against the embedded AWS, and by hand against any other endpoint
// that claims to be AWS. An endpoint that passes the suite may stand in for AWS in
// other tests.
//
// An endpoint that lacks something declares it (Harness.Lacks): the cases that
// need it are then skipped with the reason, so that nobody takes a gap for a
// pass.
package cloudtest

import (
	"slices"
	"testing"
	"time"
)

// Capability is something that AWS does and an imitation may lack.
type Capability string

// Capabilities.
const (
	ClientTokens       Capability = "client-tokens"         // EC2 answers a repeated token with the first result
	TemplatePages      Capability = "template-pages"        // templates and versions come in pages with tokens
	TemplateNames      Capability = "template-names"        // template names and ids are checked as EC2 does
	TemplateTags       Capability = "template-tags"         // tags set later show on the template
	DeleteVersions     Capability = "delete-versions"       // DeleteLaunchTemplateVersions
	GroupChecks        Capability = "group-checks"          // Auto Scaling refuses what contradicts itself, and names that are taken
	GroupSettings      Capability = "group-settings"        // all settings of a group are kept and given back
	GroupOptions       Capability = "group-options"         // warm pools, metrics, traffic sources and all else that a group can be set to
	GroupPageLimits    Capability = "group-page-limits"     // page sizes and tokens are checked
	GroupDeletion      Capability = "group-deletion"        // a group with instances is deleted by force only
	InstanceRefresh    Capability = "instance-refresh"      // instance refreshes
	NodegroupStates    Capability = "nodegroup-states"      // nodegroups pass through states
	NodegroupGroups    Capability = "nodegroup-groups"      // an Auto Scaling group is behind a nodegroup
	NodegroupUpdates   Capability = "nodegroup-updates"     // updates are objects that can be described
	NodegroupTags      Capability = "nodegroup-tags"        // nodegroups are tagged by ARN
	EKSParameters      Capability = "eks-parameters"        // SSM holds the images that EKS publishes
	DefaultRoles       Capability = "default-roles"         // IAM holds the roles of Cluster API Provider AWS
	Refusals           Capability = "refusals"              // what is unknown is refused in AWS's own form
	ImageFilters       Capability = "image-filters"         // EC2's filters of images and subnets are exact
	PricedPolicies     Capability = "priced-policies"       // a spot price in a policy is cleared by an empty text
	InlineHooks        Capability = "inline-hooks"          // a group is created with its lifecycle hooks
	InstanceDetails    Capability = "instance-details"      // instances say which type and template version they run
	MissingResources   Capability = "missing-resources"     // every operation refuses what is not there in AWS's own form
	KMSRefusals        Capability = "kms-refusals"          // KMS refuses keys that are disabled or others than a blob's
	LaunchChecks       Capability = "launch-checks"         // launches that EC2 refuses fail, and say why
	ReadBackOfTemplate Capability = "read-back-of-template" // a template's data comes back as it was sent
)

// Harness is an endpoint to test.
type Harness struct {
	// Endpoint is its URL, Region the region to use.
	Endpoint string
	Region   string
	// Lacks says what the endpoint does not do, and why that is known.
	Lacks map[Capability]string
	// Advance moves the endpoint's clock; nil where its time is the real one.
	Advance func(time.Duration)
	// Environment takes credentials from the SDK's own sources. Otherwise fixed
	// ones are used, as imitations accept them.
	Environment bool
	// Cluster is an EKS cluster to put nodegroups into; empty to make one.
	Cluster string
}

// contract is one thing that weir relies on.
type contract struct {
	name  string
	needs []Capability
	check func(*env)
}

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	t.Helper()
	groups := []struct {
		name      string
		contracts []contract
	}{
		{"templates", templateContracts()}, {"versions", versionContracts()}, {"groups", groupContracts()}, {"group changes", groupChangeContracts()},
		{"refreshes", refreshContracts()}, {"nodegroups", slices.Concat(nodegroupContracts(), nodegroupOptionContracts())}, {"lookups", lookupContracts()},
		{"refusals", refusalContracts()}, {"kms", kmsContracts()}, {"parameters", parameterContracts()}, {"adapter", adapterContracts()}, {"template fields", fieldContracts()},
		{"group options", groupOptionContracts()},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.contracts {
				t.Run(c.name, func(t *testing.T) {
					for _, need := range c.needs {
						if why, lacking := h.Lacks[need]; lacking {
							t.Skipf("the endpoint lacks %s: %s", need, why)
						}
					}
					c.check(newEnv(t, h))
				})
			}
		})
	}
}

// Capabilities returns the names of all capabilities, sorted.
func Capabilities() []Capability {
	out := []Capability{
		ClientTokens, TemplatePages, TemplateNames, TemplateTags, DeleteVersions, GroupChecks, GroupSettings, GroupOptions, GroupPageLimits, GroupDeletion,
		InstanceRefresh, NodegroupStates, NodegroupGroups, NodegroupUpdates, NodegroupTags, EKSParameters, DefaultRoles, Refusals, ImageFilters,
		PricedPolicies, InlineHooks, InstanceDetails, MissingResources, ReadBackOfTemplate, KMSRefusals, LaunchChecks,
	}
	slices.Sort(out)
	return out
}

// Moto says what moto server 5 lacks.
func Moto() map[Capability]string {
	return map[Capability]string{
		ClientTokens:       "client tokens are ignored",
		TemplatePages:      "lists are cut without a token",
		TemplateNames:      "names are not checked, missing ids are left out",
		TemplateTags:       "tags set by CreateTags are missing from templates",
		DeleteVersions:     "DeleteLaunchTemplateVersions answers with an HTML page",
		GroupChecks:        "a taken name is overwritten, minimum above maximum is accepted",
		GroupSettings:      "several settings are dropped",
		GroupOptions:       "several settings are dropped, others end in an HTML page",
		GroupPageLimits:    "a page that is too large ends in an HTML page",
		GroupDeletion:      "groups with instances are deleted without force",
		InstanceRefresh:    "StartInstanceRefresh answers with an HTML page",
		NodegroupStates:    "nodegroups are ACTIVE at once",
		NodegroupGroups:    "no group is made behind a nodegroup",
		NodegroupUpdates:   "ListUpdates and DescribeUpdate answer with an HTML page",
		NodegroupTags:      "nodegroups cannot be tagged",
		EKSParameters:      "the images of EKS are missing from SSM",
		DefaultRoles:       "IAM is empty",
		Refusals:           "what is unknown is ignored or ends in an HTML page",
		InlineHooks:        "hooks in CreateAutoScalingGroup are ignored",
		PricedPolicies:     "policies are given back as they were sent",
		InstanceDetails:    "instances do not say all that they run",
		MissingResources:   "several operations answer with an HTML page",
		LaunchChecks:       "instances start whatever the template says",
		KMSRefusals:        "disabled keys decrypt, and the wrong key is denied",
		ReadBackOfTemplate: "some members are given back in other places",
	}
}
