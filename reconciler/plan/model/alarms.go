package model

import "github.com/weir-gitops/weir/reconciler/rollout"

// UnreadAlarms returns the alarms that gates of FleetRollouts read and whose state is not available
// yet, not even as an error.
func (in Input) UnreadAlarms() (out []string) {
	if len(in.Policy.Gates.Rollouts) == 0 || in.State.AlarmsUnknown != "" {
		return nil
	}
	for _, name := range in.Policy.Gates.Alarms {
		if _, read := in.State.Alarms[name]; !read {
			out = append(out, name)
		}
	}
	return out
}

// NoteAlarms gives the conductor of governed pools the states of these alarms in the account and
// region, and the reason if some states are unknown.
func (in Input) NoteAlarms(governed []rollout.Pool) {
	var known []rollout.Alarm
	unknown := ""
	for _, name := range in.Policy.Gates.Alarms {
		if state, read := in.State.Alarms[name]; read {
			known = append(known, rollout.Alarm{Name: name, State: state})
		} else {
			unknown = in.State.AlarmsUnknown
		}
	}
	for i := range governed {
		governed[i].Facts.Alarms, governed[i].Facts.AlarmsUnknown = known, unknown
	}
}
