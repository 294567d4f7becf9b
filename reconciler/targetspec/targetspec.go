// Package targetspec defines the words in which an operator says where weir applies what. A
// target is one directory of a source and one account and region that it is applied to;
// with wildcards in its path it is one for each directory that a commit has.
//
// A commit decides which directories there are. Where each is applied to, with which
// role and which values, it never decides: that stands in the target or in its Table, by
// what the wildcards matched, and a directory without a row has no target. So nothing
// that comes from a match leads to another row, or out of a directory of this machine.
//
// The keys of the configuration are in the tags: package config reads targets from YAML
// and reports their errors, and this package gives their meaning.
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

// When a plan of a target is applied.
const (
	Always     = "always"
	AsReviewed = "as-reviewed"
)

// DefaultSSMPrefix is below where join tokens are kept in the parameter store.
const DefaultSSMPrefix = "/weir"

// Target is one directory of a source, or with wildcards several, applied to
// one AWS account and region.
type Target struct {
	// Name may hold {1}, {2}…: what the path's wildcards matched.
	Name   string `yaml:"name"`
	Source string `yaml:"source"`
	// Path is below the source's root; * and ? match within one path element.
	Path string `yaml:"path"`
	// Table says for each directory of a path with wildcards where it is applied to:
	// accounts, regions, roles and values by key, so that no commit chooses them. A
	// directory that it lacks is not planned, and nothing of it is changed or deleted.
	Table map[string]Row `yaml:"table"`
	// Key finds the row of a directory, such as {1}/{2}; {1} if left out. All
	// directories that come to one key have one row.
	Key string `yaml:"key"`
	// Region is one of AWS's. It may be left to the rows of the table.
	Region string `yaml:"region"`
	// AccountID is checked against the credentials where given.
	AccountID string `yaml:"accountID"`
	// RoleARN is assumed for everything in this target.
	RoleARN string `yaml:"roleARN"`
	// PlanRoleARN is assumed instead for plans of pull requests. It needs read access
	// only. Pull requests from forks are never planned against AWS without one.
	PlanRoleARN string `yaml:"planRoleARN"`
	// AllowedRoleARNs are roles that an AWSClusterRoleIdentity in the
	// repository may name.
	AllowedRoleARNs []string `yaml:"allowedRoleARNs"`
	// EndpointURL replaces aws.endpoint.
	EndpointURL string  `yaml:"endpointURL"`
	Network     Network `yaml:"network"`
	// Vars are values for ${VAR} in the manifests; they win over VarsFrom, and
	// a later file over an earlier one. Where the path has wildcards, {1} in a value is
	// the text that the first of them matched.
	Vars     map[string]string `yaml:"vars"`
	VarsFrom []VarsFrom        `yaml:"varsFrom"`
	// AgeKeyFiles hold the age identities that decrypt the SOPS files of the
	// target, and KMSKeyARNs are the keys of AWS KMS that may be asked to, with
	// the target's role. A file that names other keys only is an error.
	AgeKeyFiles []string `yaml:"ageKeyFiles"`
	KMSKeyARNs  []string `yaml:"kmsKeyARNs"`
	// KubeconfigFile is how weir reaches the cluster that the target's machines
	// join: for its nodes, and to keep join tokens for KubeadmConfigs without one.
	// It may hold {1} like the name. Exec plugins and auth providers are refused.
	KubeconfigFile string `yaml:"kubeconfigFile"`
	// SSMPrefixes are where parameters of AWS Systems Manager may be written; the
	// join tokens are below the first one. /weir if there is a kubeconfigFile.
	SSMPrefixes []string `yaml:"ssmPrefixes"`
	// Mode is correct (the default) or report: show drift, change nothing.
	Mode  string `yaml:"mode"`
	Prune Prune  `yaml:"prune"`
	// AllowAdopt lets the annotation weir.dev/adopt in the manifests take over
	// resources that no weir owns.
	AllowAdopt bool `yaml:"allowAdopt"`
	// Apply is always (the default), or as-reviewed: a plan is applied once its
	// digest has been approved.
	Apply string `yaml:"apply"`
	// DependsOn are targets that must have converged with the same commit, and with
	// what it follows, before this one moves on, and so must those before them; *
	// stands for any text of a name, {1} for what the path's first wildcard matched.
	// Where an entry stands for the target itself, only the entries before it matter. A
	// name that no directory gives is an error of the target that waits for it.
	DependsOn []string `yaml:"dependsOn"`
	// Windows are when steps may run that replace or end instances, or delete
	// something; none for any time.
	Windows []Window `yaml:"windows"`
	// MaxConcurrentRollouts bounds the instance refreshes and nodegroup updates
	// that move at a time in the target's account and region; the smallest of the
	// targets there is in force. None for no bound.
	MaxConcurrentRollouts Rollouts `yaml:"maxConcurrentRollouts"`
	// Rollout demands waves of whatever replaces the target's machines.
	Rollout Demand `yaml:"rollout"`
	// Suspend plans and never writes.
	Suspend bool `yaml:"suspend"`
}

// Demand says what a FleetRollout must order before machines are replaced.
type Demand struct {
	// Required holds each rollout and replacement of a pool that no FleetRollout of the
	// source selects. What replaces no machine goes on.
	Required bool `yaml:"required"`
	// MinWaves is how many waves the FleetRollout must write at least, up to the first that
	// takes all pools that are left. Only waves that hold machines of a change count.
	MinWaves int `yaml:"minWaves"`
	// MaxMachines is the most that its maxMachines may be.
	MaxMachines int `yaml:"maxMachines"`
}

// Network replaces what the manifests or AWS say.
type Network struct {
	VPCID            string   `yaml:"vpcID"`
	SubnetIDs        []string `yaml:"subnetIDs"`
	SecurityGroupIDs []string `yaml:"securityGroupIDs"`
}

// VarsFrom is a file with values for variables, lines KEY=VALUE or a mapping in YAML.
type VarsFrom struct {
	// File is on weir's own machine, and may hold {1} like the name: a character that
	// a name cannot hold is then a dash. It is not searched for {1}.
	File string `yaml:"file"`
	// Path replaces file: a file of the repository, relative to the target's directory,
	// which may hold {1}. A commit decides what it says, so all that the configuration
	// says wins over it, vars and files alike, and it is never secret.
	Path string `yaml:"path"`
	// Secret marks every value of the file as secret: none is ever shown, and one
	// that reaches a field outside user data is an error.
	Secret bool `yaml:"secret"`
	// At is where the configuration names the file.
	At diag.Position `yaml:"-"`
}

// Prune says whether weir deletes what Git no longer wants.
type Prune struct {
	Enabled bool `yaml:"enabled"`
	// Limit bounds what one pass may delete.
	Limit Limit `yaml:"limit"`
}

// Limit is a number of pools, or a share of them.
type Limit struct {
	// Percent is 1 to 100, or 0 where Count says how many.
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
		return fmt.Errorf("%q is no limit; write a number from 1, or a percentage like 20%%", text)
	case percent && n > 100:
		return fmt.Errorf("%q is above 100%%", text)
	case percent:
		*l = Limit{Percent: n}
	default:
		*l = Limit{Count: n}
	}
	return nil
}

// String is the limit as a configuration writes it.
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
		return fmt.Errorf("%q is no number of rollouts; write one from 1, or leave the key out for no limit", text)
	}
	*r = Rollouts(n)
	return nil
}

// defaultPrunePercent is the percentage of its pools that a pass may delete of a target without a
// setting.
const defaultPrunePercent = 20

// SetDefaults fills in open members, and makes names of files absolute, which are
// relative to base.
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

// Absolute makes names of files absolute, which are relative to base.
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
