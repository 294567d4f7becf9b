// Package cloudtest is a test suite for the contract between weir and AWS. It tests everything that weir
// relies on, over the wire and with the real SDK clients. The tests run against the embedded AWS, and can be
// run manually against any other endpoint that claims to be AWS. An endpoint that passes the suite may
// replace AWS in other tests.
//
// An endpoint declares its missing features in Harness.Lacks. The suite then skips the cases that need them,
// with the reason, so that a skipped case does not look like a pass.
package cloudtest

import (
	"slices"
	"testing"
	"time"
)

// Capability is a feature of AWS that an imitation may not have.
type Capability string

// Capabilities.
const (
	ClientTokens       Capability = "client-tokens"         // EC2 answers a repeated token with the first result
	TemplatePages      Capability = "template-pages"        // templates and versions come in pages with tokens
	TemplateNames      Capability = "template-names"        // template names and ids are checked like in EC2
	TemplateTags       Capability = "template-tags"         // tags set later are shown on the template
	DeleteVersions     Capability = "delete-versions"       // DeleteLaunchTemplateVersions
	GroupChecks        Capability = "group-checks"          // Auto Scaling refuses contradictions and names in use
	GroupSettings      Capability = "group-settings"        // all settings of a group are stored and returned
	GroupOptions       Capability = "group-options"         // warm pools, metrics, traffic sources and all other group settings
	GroupPageLimits    Capability = "group-page-limits"     // page sizes and tokens are checked
	GroupDeletion      Capability = "group-deletion"        // only a forced deletion deletes a group with instances
	InstanceRefresh    Capability = "instance-refresh"      // instance refreshes
	NodegroupStates    Capability = "nodegroup-states"      // nodegroups pass through states
	NodegroupGroups    Capability = "nodegroup-groups"      // a nodegroup has an Auto Scaling group
	NodegroupUpdates   Capability = "nodegroup-updates"     // updates are objects that can be described
	NodegroupTags      Capability = "nodegroup-tags"        // nodegroups are tagged by ARN
	EKSParameters      Capability = "eks-parameters"        // SSM has the parameters for the images that EKS publishes
	DefaultRoles       Capability = "default-roles"         // IAM has the roles of Cluster API Provider AWS
	Refusals           Capability = "refusals"              // unknown things are refused in AWS's own form
	ImageFilters       Capability = "image-filters"         // EC2's filters of images and subnets are exact
	PricedPolicies     Capability = "priced-policies"       // an empty text clears a spot price in a policy
	InlineHooks        Capability = "inline-hooks"          // a group is created with its lifecycle hooks
	InstanceDetails    Capability = "instance-details"      // instances report their type and template version
	MissingResources   Capability = "missing-resources"     // every operation refuses missing resources in AWS's own form
	KMSRefusals        Capability = "kms-refusals"          // KMS refuses disabled keys and keys other than a blob's
	LaunchChecks       Capability = "launch-checks"         // launches that EC2 refuses fail with a reason
	ReadBackOfTemplate Capability = "read-back-of-template" // a template's data is returned as it was sent
)

// Harness is an endpoint to test.
type Harness struct {
	// Endpoint is the URL, and Region the region for the tests.
	Endpoint string
	Region   string
	// Lacks maps each missing feature of the endpoint to the reason why it is known to be missing.
	Lacks map[Capability]string
	// Advance advances the endpoint's clock. It is nil if the endpoint uses real time.
	Advance func(time.Duration)
	// Environment takes credentials from the SDK's own sources. Otherwise the tests use fixed ones, which
	// imitations accept.
	Environment bool
	// Cluster is an EKS cluster for the nodegroups. If it is empty, the tests create one.
	Cluster string
}

// contract is one behavior that weir relies on.
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

// Moto returns the features that moto server 5 does not have.
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
