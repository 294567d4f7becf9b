package preflight

import (
	"context"
	"encoding/json"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// mostDryRuns is how many launches are tried for one plan. EC2 gives RunInstances a small
// bucket of calls, from which launches draw too; pools that differ in nothing that EC2
// looks at share a dry run.
const mostDryRuns = 5

// launch tries launches that nothing else was found about: EC2 knows more rules than weir.
func (v *verdict) launch(launches []*launch) {
	tried := map[string]bool{}
	for _, l := range launches {
		r, ok := dryRunOf(l)
		if !ok {
			continue
		}
		key := r.key()
		if !tried[key] && len(tried) == mostDryRuns {
			continue
		}
		tried[key] = true
		refused, ok, _ := know(v, v.facts.dryRuns, key)
		if !ok || refused == nil {
			continue
		}
		object, path := l.pool.Infrastructure, intent.Path{"spec", "awsLaunchTemplate"}
		if u, found := observed.FindUnknownName(refused.Message); found {
			object, path = u.Field(l.pool)
		} else if c := l.pool.LaunchConfig; c != nil {
			object, path = c.Source, c.Spec()
		}
		v.warn(codeDryRun, object, path, "EC2 would not launch a machine of the new template version: "+refused.Code+": "+refused.Message, "")
	}
}

// dryRunOf is the dry run for a launch whose template version is made by the plan.
func dryRunOf(l *launch) (DryRun, bool) {
	if !l.made || l.data.ImageID == "" || len(l.types) == 0 || len(l.subnets) == 0 {
		return DryRun{}, false // EKS chooses the image, or AWS the type
	}
	r := DryRun{Data: l.data, Type: l.types[0].value, Subnet: l.subnets[0]}
	// It may hold secrets, and EC2 looks at nothing but its size. Tags need a permission
	// of their own.
	r.Data.UserData, r.Data.TagSpecifications, r.Data.InstanceType = "", nil, ""
	return r, true
}

// key distinguishes dry runs.
func (r DryRun) key() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic("key of a dry run: " + err.Error())
	}
	return string(text)
}

// readDryRuns tries the launches that are wanted.
func (a *Asker) readDryRuns(ctx context.Context, now time.Time) {
	for _, key := range a.facts.dryRuns.take() {
		var r DryRun
		if err := json.Unmarshal([]byte(key), &r); err != nil {
			panic("dry run of a key: " + err.Error())
		}
		refused, err := a.launcher.DryRun(ctx, r)
		a.facts.dryRuns.put(key, refused, true, err, now)
	}
}
