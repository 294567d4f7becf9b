// Package targetspec defines the configuration of targets. A target is one directory of a source, and the
// account and region to which weir applies it. A path with wildcards gives one target for each matching
// directory of a commit.
//
// Commits decide which directories exist. They never decide where a directory is applied, or with which role
// and values: the target or its Table does, by the texts that the wildcards match. A directory without a row
// has no target. So no text from a match leads to another row, or out of a directory on this machine.
//
// The struct tags have the keys of the configuration. Package config reads targets from YAML and reports
// errors. This package defines their meaning.
package targetspec

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
)

// Modes of a target.
const (
	Correct = "correct"
	Report  = "report"
)

// The values of Target.Apply.
const (
	Always     = "always"
	AsReviewed = "as-reviewed"
)

// DefaultSSMPrefix is the default prefix of join tokens in the parameter store.
const DefaultSSMPrefix = "/weir"

// Target is one directory of a source that weir applies to one AWS account and region. A path with
// wildcards stands for one target per directory.
type Target struct {
	// Name is the name of the target. {1}, {2}… stand for the texts that the path's wildcards
	// match.
	Name string `yaml:"name"`
	// Source names the source. It is optional if there is only one source.
	Source string `yaml:"source"`
	// Path is a directory below the root of the source. * and ? match within one path element.
	Path string `yaml:"path"`
	// Table defines accounts, regions, roles and values for each directory of a path with
	// wildcards, by key. Commits cannot change them. weir does not plan, change or delete anything
	// for a directory without a row.
	Table map[string]Row `yaml:"table"`
	// Key is the key of the row for a directory, such as {1}/{2}. The default is {1}. Directories
	// with the same key use the same row.
	Key string `yaml:"key"`
	// Region is the AWS region. It can be set in the rows of the table instead.
	Region string `yaml:"region"`
	// AccountID is the AWS account. If set, weir checks that the credentials belong to it.
	AccountID string `yaml:"accountID"`
	// RoleARN is the role that weir assumes for this target.
	RoleARN string `yaml:"roleARN"`
	// PlanRoleARN is the role that weir assumes to plan pull requests. It needs read access only.
	// Without it weir does not plan pull requests from forks against AWS.
	PlanRoleARN string `yaml:"planRoleARN"`
	// AllowedRoleARNs lists roles that an AWSClusterRoleIdentity in the repository may name.
	AllowedRoleARNs []string `yaml:"allowedRoleARNs"`
	// EndpointURL replaces aws.endpoint for this target.
	EndpointURL string  `yaml:"endpointURL"`
	Network     Network `yaml:"network"`
	// Vars are values for ${VAR} in the manifests. They win over varsFrom. {1} in a value stands
	// for the text that the first wildcard of the path matches.
	Vars map[string]string `yaml:"vars"`
	// VarsFrom lists files with values for ${VAR}. A later file wins over an earlier one.
	VarsFrom []VarsFrom `yaml:"varsFrom"`
	// AgeKeyFiles lists files with age identities that decrypt the SOPS files of the target. A SOPS
	// file that needs other keys is an error.
	AgeKeyFiles []string `yaml:"ageKeyFiles"`
	// KMSKeyARNs lists keys of AWS KMS that may decrypt SOPS files, used with the target's role.
	KMSKeyARNs []string `yaml:"kmsKeyARNs"`
	// KubeconfigFile is a kubeconfig for the cluster that the target's machines join. weir uses it
	// to read nodes, and to maintain join tokens for KubeadmConfigs without a token. The path may
	// contain {1}. weir rejects exec plugins and auth providers.
	KubeconfigFile string `yaml:"kubeconfigFile"`
	// SSMPrefixes lists the prefixes of AWS Systems Manager parameters that weir may write. Join
	// tokens are below the first one. The default is /weir if kubeconfigFile is set.
	SSMPrefixes []string `yaml:"ssmPrefixes"`
	// Mode is correct (the default) or report. With report, weir shows drift and changes nothing.
	Mode  string `yaml:"mode"`
	Prune Prune  `yaml:"prune"`
	// AllowAdopt allows the annotation weir.dev/adopt in the manifests to adopt resources without
	// an owner.
	AllowAdopt bool `yaml:"allowAdopt"`
	// Apply is always (the default) or as-reviewed. With as-reviewed, weir applies a plan when its
	// digest has been approved.
	Apply string `yaml:"apply"`
	// DependsOn lists targets that must have converged with the same commit, and with the same
	// images and versions, before this target continues. The same holds for their own dependsOn. *
	// matches any text of a name, and {1} is the text that the path's first wildcard matches. If an
	// entry matches the target itself, only the entries before it count. An unknown name is an
	// error.
	DependsOn []string `yaml:"dependsOn"`
	// Windows lists the times in which steps may replace or end instances, or delete something.
	// Without windows they may run at any time.
	Windows []Window `yaml:"windows"`
	// MaxConcurrentRollouts is the maximum number of instance refreshes and nodegroup updates at a
	// time in the target's account and region. If targets there differ, the smallest number
	// applies. Without it there is no limit.
	MaxConcurrentRollouts Rollouts `yaml:"maxConcurrentRollouts"`
	// Rollout requires that FleetRollouts order every replacement of the target's machines.
	Rollout Demand `yaml:"rollout"`
	// Suspend makes weir plan the target and change nothing.
	Suspend bool `yaml:"suspend"`
}

// Demand defines the FleetRollout that a target requires before weir replaces machines.
type Demand struct {
	// Required holds every rollout and replacement of a pool that no FleetRollout of the source
	// selects. Changes that replace no machine continue.
	Required bool `yaml:"required"`
	// MinWaves is the minimum number of waves, up to the first wave that takes all remaining pools.
	// Only waves with machines of a change count.
	MinWaves int `yaml:"minWaves"`
	// MaxMachines is the maximum for maxMachines of the FleetRollout.
	MaxMachines int `yaml:"maxMachines"`
}

// Network replaces the network in the manifests or in AWS.
type Network struct {
	// VPCID is the id of the VPC.
	VPCID string `yaml:"vpcID"`
	// SubnetIDs lists the ids of the subnets.
	SubnetIDs []string `yaml:"subnetIDs"`
	// SecurityGroupIDs lists the ids of the security groups.
	SecurityGroupIDs []string `yaml:"securityGroupIDs"`
}

// VarsFrom is a file with values for variables: lines KEY=VALUE, or a YAML mapping.
type VarsFrom struct {
	// File is a file on weir's machine. Its path may contain {1}, in which characters that a
	// target's name cannot have become dashes. weir does not replace {1} in the file's contents.
	File string `yaml:"file"`
	// Path is a file of the repository, relative to the target's directory, instead of file. It may
	// contain {1}. Its values are never secret, and all vars and files of the configuration win
	// over them.
	Path string `yaml:"path"`
	// Secret marks every value of the file as secret. weir never shows such a value, and it is an
	// error if one reaches a field outside user data.
	Secret bool `yaml:"secret"`
	// At is where the configuration names the file.
	At diag.Position `yaml:"-"`
}

// Prune configures whether weir deletes resources that Git no longer wants.
type Prune struct {
	// Enabled turns deletion on.
	Enabled bool `yaml:"enabled"`
	// Limit is the maximum that one pass may delete: a number of pools, or a percentage of them.
	Limit Limit `yaml:"limit"`
}

// Limit is a number of pools or a percentage of them.
type Limit struct {
	// Percent is 1 to 100, or 0 if Count is set.
	Percent int
	Count   int
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Limit) UnmarshalText(b []byte) error {
	text := string(b)
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	switch {
	case err != nil || n < 1 || strings.HasPrefix(number, "+"):
		return fmt.Errorf("%q is not a valid limit: write 1 or more, or a percentage such as 20%%", text)
	case percent && n > 100:
		return fmt.Errorf("%q is above 100%%", text)
	case percent:
		*l = Limit{Percent: n}
	default:
		*l = Limit{Count: n}
	}
	return nil
}

// String returns the limit in the form of the configuration.
func (l Limit) String() string {
	if l.Percent > 0 {
		return fmt.Sprintf("%d%%", l.Percent)
	}
	return strconv.Itoa(l.Count)
}

// Rollouts is a number of rollouts.
type Rollouts int

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Rollouts) UnmarshalText(b []byte) error {
	text := string(b)
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || strings.HasPrefix(text, "+") {
		return fmt.Errorf("%q is not a valid number of rollouts: write 1 or more, or leave the key out for no limit", text)
	}
	*r = Rollouts(n)
	return nil
}

// defaultPrunePercent is the default percentage of a target's pools that one pass may delete.
const defaultPrunePercent = 20

// SetDefaults sets the defaults of unset fields, and resolves relative file names against base.
func (t *Target) SetDefaults(base string) {
	t.Path = cmp.Or(t.Path, ".")
	t.Mode = cmp.Or(t.Mode, Correct)
	t.Apply = cmp.Or(t.Apply, Always)
	for j := range t.Windows {
		t.Windows[j].Kind = cmp.Or(t.Windows[j].Kind, Allow)
		t.Windows[j].Timezone = cmp.Or(t.Windows[j].Timezone, "UTC")
	}
	if t.Prune.Limit == (Limit{}) {
		t.Prune.Limit.Percent = defaultPrunePercent
	}
	for j := range t.VarsFrom {
		Absolute(base, &t.VarsFrom[j].File)
	}
	for j := range t.AgeKeyFiles {
		Absolute(base, &t.AgeKeyFiles[j])
	}
	for key, row := range t.Table {
		Absolute(base, &row.KubeconfigFile)
		t.Table[key] = row
	}
	if len(t.Table) > 0 {
		t.Key = cmp.Or(t.Key, defaultKey)
	}
	Absolute(base, &t.KubeconfigFile)
	if t.KubeconfigFile != "" && len(t.SSMPrefixes) == 0 {
		t.SSMPrefixes = []string{DefaultSSMPrefix}
	}
}

// Absolute makes relative file names absolute. They are relative to base.
func Absolute(base string, paths ...*string) {
	for _, p := range paths {
		if *p == "" || filepath.IsAbs(*p) {
			continue
		}
		if abs, err := filepath.Abs(filepath.Join(base, *p)); err == nil {
			*p = abs
		}
	}
}
