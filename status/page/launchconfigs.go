package page

import (
	"strconv"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// launchConfigView is a row of the page's table of launch configurations.
type launchConfigView struct {
	plan.LaunchConfigStatus
	Mark   string // the CSS class of the state
	Newest string
	Why    string // the reason why it waits
	Users  []configUser
}

// configUser is a pool that uses a launch configuration, with its versions.
type configUser struct {
	linked
	wording.Versions
}

// launchConfigViews prepares the launch configurations of a target for its page.
func launchConfigViews(list []plan.LaunchConfigStatus) []launchConfigView {
	var out []launchConfigView
	for _, s := range list {
		v := launchConfigView{LaunchConfigStatus: s, Mark: string(report.Moving)}
		if s.LatestVersion > 0 {
			v.Newest = "v" + strconv.FormatInt(s.LatestVersion, 10)
		}
		of := wording.VersionsOf(s)
		for _, p := range s.Pools {
			v.Users = append(v.Users, configUser{linked{p, keyLink(s.Target, p)}, of[p]})
		}
		if s.Ready {
			v.Mark = string(report.Converged)
		}
		for _, c := range s.Conditions {
			if c.Type == "Ready" && c.Severity == "Error" {
				v.Mark, v.Why = string(report.Failing), c.Message
			}
		}
		out = append(out, v)
	}
	return out
}
