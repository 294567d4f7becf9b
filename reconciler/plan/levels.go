package plan

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// LevelOf returns the level in an answer. It returns false if the answer has none.
func LevelOf(l intent.Lookup, a observed.Answer) (model.Level, bool) {
	switch l.Kind {
	case intent.ImageByParameter, intent.ImageForEKS, intent.ImageByName:
		if a.Image != nil {
			return model.Level{ID: a.Image.ID, Name: a.Image.Name}, true
		}
	case intent.TemplateByName, intent.TemplateByID:
		if a.Template != nil {
			return model.Level{ID: a.Template.ID + ":" + strconv.FormatInt(a.Template.Version, 10)}, true
		}
	case intent.EKSCluster:
		if a.Cluster != nil {
			version := "Kubernetes " + a.Cluster.Version
			return model.Level{ID: version, Name: version}, true
		}
	}
	return model.Level{}, false
}

// Levels returns the distinct levels of the answers that a set of intents uses.
func Levels(set *intent.Set, known map[intent.Lookup]model.Level) []model.Level {
	var out []model.Level
	for i := range set.Pools {
		for l := range set.Pools[i].Lookups() {
			if level, ok := known[l]; ok {
				out = append(out, level)
			}
		}
	}
	slices.SortFunc(out, func(a, b model.Level) int { return cmp.Or(cmp.Compare(a.ID, b.ID), b.Since.Compare(a.Since)) })
	return slices.CompactFunc(out, func(a, b model.Level) bool { return a.ID == b.ID })
}

// awaits returns the wait of a step for an earlier target: a level that the step's pools use has
// changed, and the earlier target does not have it yet. It is empty if the step does not wait. A
// pool that keeps its image does not use a newer one.
func (p *Plan) awaits(in model.Input, s step.Step) string {
	if len(in.Policy.Gates.Earlier) == 0 || !s.MovesLevel() {
		return ""
	}
	account, region := in.Policy.Account, in.Policy.Region
	for _, key := range append([]string{s.Pool}, s.Pools...) {
		pool := in.Set.Pool(key)
		if pool == nil {
			continue
		}
		for l := range pool.Lookups() {
			level, ok := in.Levels[l]
			image, _ := p.Image(key)
			if !ok || pool.LaunchTemplate != nil && l == pool.LaunchTemplate.Image && image != "" && image != level.ID {
				continue
			}
			for _, e := range in.Policy.Gates.Earlier {
				if e.Unaware(account, region, level) {
					return WaitText(e.Target, "has not yet looked for the "+l.String())
				}
				if has := e.Lags(account, region, level); has != "" {
					return WaitText(e.Target, "has "+has+": AWS has not yet published "+level.Name+" in "+e.Region)
				}
			}
		}
	}
	return ""
}
