package status

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/wording"
)

// LaunchConfigs returns the AWSLaunchConfigs of all targets, by target, namespace
// and name.
func (b *Board) LaunchConfigs() []plan.LaunchConfigStatus {
	out := []plan.LaunchConfigStatus{}
	for _, t := range b.Targets() {
		out = append(out, t.LaunchConfigs...)
	}
	slices.SortStableFunc(out, func(x, y plan.LaunchConfigStatus) int {
		return cmp.Or(cmp.Compare(x.Target, y.Target), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return out
}

// launchConfig copies a status with its free texts redacted.
func (f Redact) launchConfig(s plan.LaunchConfigStatus) plan.LaunchConfigStatus {
	s.Pools, s.Conditions, s.Versions = slices.Clone(s.Pools), slices.Clone(s.Conditions), slices.Clone(s.Versions)
	for i := range s.Conditions {
		s.Conditions[i].Message = f.text(s.Conditions[i].Message)
	}
	return s
}

// launchConfigView is a row of the page's table of launch configurations.
type launchConfigView struct {
	plan.LaunchConfigStatus
	Mark   string // the CSS class of the state
	Newest string
	Why    string // what it waits for
	Users  []configUser
}

// configUser is a pool that uses a launch configuration, and which versions of it.
type configUser struct {
	linked
	wording.Versions
}

func launchConfigViews(list []plan.LaunchConfigStatus) []launchConfigView {
	var out []launchConfigView
	for _, s := range list {
		v := launchConfigView{LaunchConfigStatus: s, Mark: string(TargetMoving)}
		if s.LatestVersion > 0 {
			v.Newest = "v" + strconv.FormatInt(s.LatestVersion, 10)
		}
		of := wording.VersionsOf(s)
		for _, p := range s.Pools {
			v.Users = append(v.Users, configUser{linked{p, keyLink(s.Target, p)}, of[p]})
		}
		if s.Ready {
			v.Mark = string(TargetConverged)
		}
		for _, c := range s.Conditions {
			if c.Type == "Ready" && c.Severity == "Error" {
				v.Mark, v.Why = string(TargetFailing), c.Message
			}
		}
		out = append(out, v)
	}
	return out
}
