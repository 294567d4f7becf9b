package reconciler

import "context"

// fact names a result of a stage. A fact with the name of a field of passState is that field's
// value. Every other fact is an effect on which later stages depend.
type fact string

// Effects.
const (
	recalled   fact = "memory recalled"
	selected   fact = "targets selected"
	explained  fact = "shortages explained"
	checked    fact = "plans checked"
	limited    fact = "rollouts limited"
	reported   fact = "plans reported"
	authorized fact = "writes authorized"
	tokens     fact = "tokens stored"
	granted    fact = "grants recorded"
	recorded   fact = "start recorded"
	applied    fact = "steps applied"
	diagnosed  fact = "failures explained"
)

// stage is one part of a pass.
type stage struct {
	name string
	// applies is set for a stage of applying passes only.
	applies bool
	// needs lists facts that earlier stages make. makes lists the facts that this stage makes. A
	// stage may also change the value of a fact that it needs.
	needs, makes []fact
	// does describes the stage for ARCHITECTURE.md.
	does string
	run  func(*passState, context.Context) error
}

// stages lists the stages of a pass, in order. A test compares them with the fields that their
// functions read and write, with real passes, and with ARCHITECTURE.md.
var stages = []stage{
	{
		name: "recall", makes: []fact{"due", recalled}, run: (*passState).recall,
		does: "takes in what earlier passes, and daemons that owned this scope before, recorded: failed attempts, cancelled refreshes, what is changing",
	},
	{
		name: "resolve", needs: []fact{recalled}, makes: []fact{"inputs"}, run: (*passState).resolve,
		does: "answers all lookups in batches, from a cache with expiry; reads the nodes of workload clusters",
	},
	{
		name: "plan", needs: []fact{"due", "inputs"}, makes: []fact{"partial", "observedAt", "listed", "plans", "state"}, run: (*passState).plan,
		does: "reads groups and launch templates by owner tag, nodegroups by cluster, or only what is changing; plans every target; if a plan names needs, reads them and plans again",
	},
	{
		name: "select", needs: []fact{"partial", "inputs", "plans"}, makes: []fact{"targets", selected}, run: (*passState).selectTargets,
		does: "drops targets that the partial read skipped, and targets whose commit cannot be rendered unless AWS matches an earlier revision",
	},
	{
		name: "explain", needs: []fact{"inputs", "plans", "state", selected}, makes: []fact{explained}, run: (*passState).explain,
		does: "finds out why machines are missing, and names the images that change",
	},
	{
		name: "check", needs: []fact{"inputs", "plans", "targets"}, makes: []fact{checked}, run: (*passState).check,
		does: "finds out what AWS would refuse, and which disruption budgets block; holds what cannot succeed",
	},
	{
		name: "limit", needs: []fact{"plans", "state", checked}, makes: []fact{limited}, run: (*passState).limitRollouts,
		does: "holds the rollouts that exceed the limit of parallel ones",
	},
	{
		name: "watch", needs: []fact{"inputs", "plans", "state", "targets", limited}, makes: []fact{"unread"}, run: (*passState).watch,
		does: "remembers the instance refreshes in progress, and drops the requests to try again that the plans followed",
	},
	{
		name: "report", needs: []fact{"partial", "inputs", "plans", "state", "targets", explained, limited}, makes: []fact{"converged", "inService", reported}, run: (*passState).report,
		does: "puts the plans, the states of the pools, and the file and line behind each change and finding into the reports",
	},
	{
		name: "remember", needs: []fact{"inputs", "observedAt", "state", "targets", "converged", "inService"}, run: (*passState).remember,
		does: "keeps what later passes need, and forgets what neither Git nor AWS has",
	},
	{
		name: "authorize", applies: true, needs: []fact{"observedAt", "state", "targets", "unread", reported}, makes: []fact{"applier", authorized}, run: (*passState).authorize,
		does: "checks that weir has not lost its records; only then makes the applier; forgets writes that AWS now returns",
	},
	{
		name: "tokens", applies: true, needs: []fact{"inputs", "targets", authorized}, makes: []fact{tokens}, run: (*passState).joinTokens,
		does: "renews join tokens, so that no machine starts without one",
	},
	{
		name: "grant", applies: true, needs: []fact{"targets", tokens}, makes: []fact{granted}, run: (*passState).recordGrants,
		does: "records the approvals that the steps use; a plan whose approval cannot be recorded does not run",
	},
	{
		name: "drain", applies: true, needs: []fact{"inputs", "state", "targets", "applier"}, run: (*passState).drain,
		does: "moves pods off machines that end, and answers their lifecycle hooks",
	},
	{
		name: "record", applies: true, needs: []fact{"state", "targets", granted}, makes: []fact{recorded}, run: (*passState).record,
		does: "stores the commits that start and the refreshes that will be cancelled, in case the daemon ends during the steps",
	},
	{
		name: "apply", applies: true, needs: []fact{"applier", tokens, granted, recorded}, makes: []fact{applied}, run: (*passState).applySteps,
		does: "reads again what a step is based on, and executes it; leases and suspensions are checked before each call",
	},
	{
		name: "diagnose", applies: true, needs: []fact{"targets", applied}, makes: []fact{diagnosed}, run: (*passState).diagnose,
		does: "says why steps failed, and when they are tried again",
	},
	{
		name: "store", applies: true, needs: []fact{"partial", "inputs", "listed", "state", "targets", diagnosed}, run: (*passState).store,
		does: "stores failed attempts and converged targets, and what is changing",
	},
	{
		name: "finish", needs: []fact{"partial", "targets", reported}, makes: []fact{"result"}, run: (*passState).finish,
		does: "returns a report for each target",
	},
}

// runStages runs the stages of a pass and stops at the first error.
func runStages(ctx context.Context, ps *passState) error {
	for _, s := range stages {
		if s.applies && ps.mode != Apply {
			continue
		}
		if err := s.run(ps, ctx); err != nil {
			return err
		}
	}
	return nil
}
