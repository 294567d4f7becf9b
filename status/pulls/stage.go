package pulls

// stage is the state of the planning of a pull request.
type stage string

const (
	stageMerged    stage = "it is merged"
	stageUnread    stage = "it was not read since the restart"
	stageBlocked   stage = "it needs a permission to be planned"
	stagePlanning  stage = "its plan is under way"
	stageKilled    stage = "its plan killed a process, and nobody asked to try again"
	stageUnsettled stage = "its targets change; they may change more"
	stagePostponed stage = "a later time is set for its next plan"
	stagePlanned   stage = "its plan is up to date"
	stageDue       stage = "it must be planned"
)

// stageFacts contains the facts that determine the stage of a pull request.
type stageFacts struct {
	merged, read, blocked, planning bool
	// killed says that the plan of its head killed a process, and asked that a user requests a plan.
	killed, asked bool
	// dirty says that targets changed since the plan, and settling that the last plan started less than 5
	// seconds ago.
	dirty, settling bool
	// current says that the plan is based on the current head and on the followed commit.
	current bool
	// retry says that a time for the next plan is set, and later that this time has not been reached.
	retry, later bool
}

// stage classifies the facts. The first matching case wins.
func (f stageFacts) stage() stage {
	switch {
	case f.merged:
		return stageMerged
	case !f.read:
		return stageUnread
	case f.blocked:
		return stageBlocked
	case f.planning:
		return stagePlanning
	case f.killed && !f.asked:
		return stageKilled
	case f.dirty && f.settling:
		return stageUnsettled
	case f.later && !f.asked:
		return stagePostponed
	case f.current && !f.dirty && !f.asked && !f.retry:
		return stagePlanned
	}
	return stageDue
}
