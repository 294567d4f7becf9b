package plan

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// Level is what AWS answered to a lookup that says what machines run and may be
// answered otherwise tomorrow, without a commit: the image that is newest, the newest
// version of a launch template, the Kubernetes version of a control plane.
type Level struct {
	// ID says what it is in its account and region; Name says it elsewhere too, and is
	// empty where nothing does.
	ID, Name string
	// Since is when this process was first told so.
	Since time.Time
}

// LevelOf is the level that an answer tells, and false where it tells none.
func LevelOf(l intent.Lookup, a observed.Answer) (Level, bool) {
	switch l.Kind {
	case intent.ImageByParameter, intent.ImageForEKS, intent.ImageByName:
		if a.Image != nil {
			return Level{ID: a.Image.ID, Name: a.Image.Name}, true
		}
	case intent.TemplateByName, intent.TemplateByID:
		if a.Template != nil {
			return Level{ID: a.Template.ID + ":" + strconv.FormatInt(a.Template.Version, 10)}, true
		}
	case intent.EKSCluster:
		if a.Cluster != nil {
			version := "Kubernetes " + a.Cluster.Version
			return Level{ID: version, Name: version}, true
		}
	}
	return Level{}, false
}

// Levels are those of the answers that a set of intents goes by, each once.
func Levels(set *intent.Set, known map[intent.Lookup]Level) []Level {
	var out []Level
	for i := range set.Pools {
		for _, l := range set.Pools[i].Lookups() {
			if level, ok := known[l]; ok {
				out = append(out, level)
			}
		}
	}
	slices.SortFunc(out, func(a, b Level) int { return cmp.Or(cmp.Compare(a.ID, b.ID), b.Since.Compare(a.Since)) })
	return slices.CompactFunc(out, func(a, b Level) bool { return a.ID == b.ID })
}

// Earlier is a target that this one comes after. It has converged, with what it knew.
type Earlier struct {
	Target, Account, Region string
	// Levels are what it has converged with, each asked for at Fresh or later.
	Levels []Level
	Fresh  time.Time
}

// Unaware reports whether the target was last asked about what it follows before a
// level of another target was known, so that it may be about to move there itself. A
// target that follows nothing moves nowhere.
func (e Earlier) Unaware(account, region string, l Level) bool {
	return len(e.Levels) > 0 && e.Fresh.Before(l.Since) && !e.has(account, region, l)
}

func (e Earlier) has(account, region string, l Level) bool {
	elsewhere := e.Account != account || e.Region != region
	return slices.ContainsFunc(e.Levels, func(own Level) bool {
		return own.ID == l.ID || elsewhere && l.Name != "" && own.Name == l.Name
	})
}

// datedImage is the name of an image that EKS publishes, under the same name in every
// region and not everywhere at the same time.
var datedImage = regexp.MustCompile(`^(amazon-eks-(?:[a-z]+-)*node-.*-v)(\d{8})$`)

// lags names the image of the same kind that the target has where a newer one is
// published elsewhere already; empty where it does not lag.
func (e Earlier) lags(account, region string, l Level) string {
	want := datedImage.FindStringSubmatch(l.Name)
	if want == nil || e.has(account, region, l) {
		return ""
	}
	older := ""
	for _, own := range e.Levels {
		have := datedImage.FindStringSubmatch(own.Name)
		switch {
		case have == nil || have[1] != want[1]:
		case have[2] > want[2]:
			return "" // it has gone beyond
		default:
			older = own.Name
		}
	}
	return older
}

// awaits says which earlier target a step waits for because what its pools go by has
// moved and that target has not come there; empty if none.
func (in Input) awaits(s step.Step) string {
	if len(in.Policy.Gates.Earlier) == 0 || !s.MovesLevel() {
		return ""
	}
	account, region := in.Policy.Account, in.Policy.Region
	for i := range in.Set.Pools {
		pool := &in.Set.Pools[i]
		if key := pool.Key.String(); key != s.Pool && !slices.Contains(s.Pools, key) {
			continue
		}
		for _, l := range pool.Lookups() {
			level, ok := in.Levels[l]
			if !ok {
				continue
			}
			for _, e := range in.Policy.Gates.Earlier {
				if e.Unaware(account, region, level) {
					return WaitText(e.Target, "is yet to look for the "+l.String())
				}
				if has := e.lags(account, region, level); has != "" {
					return WaitText(e.Target, "has "+has+": AWS is yet to publish "+level.Name+" in "+e.Region)
				}
			}
		}
	}
	return ""
}
