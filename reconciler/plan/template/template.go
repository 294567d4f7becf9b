// Package template plans EC2 launch templates: which version a pool's machines should run, whether
// it exists, and how a new version differs.
//
// Versions are found by content, never by number. The description of a version that weir made
// contains two hashes: one of the content sent to EC2, and one of the content in Git before its
// image is looked up (package content). As long as the second hash is the same, the version keeps
// its image, so a newly published image alone rolls no fleet. weir believes a description only if
// the version's content matches it, as others may have copied it.
//
// A pool's template has one of three owners: the pool itself, an AWSLaunchConfig that several pools
// share (Shared, planned once before its pools), or somebody else (a foreign template, which weir
// never changes).
package template

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Planner plans launch templates.
type Planner struct {
	*model.Work
	// Shared maps keys of AWSLaunchConfigs to the templates that pools share.
	Shared map[string]*Shared
	// Images caches the canonical forms of image lookups.
	Images map[intent.Lookup][]byte
}

func (c Planner) Fork() Planner {
	c.Work = c.Work.Fork()
	return c
}

// Version is the template version that a pool's machines should run.
type Version struct {
	// Ref has no Version if a step of this plan makes it.
	Ref observed.TemplateRef
	// Number is the version's number, predicted if the version does not exist yet.
	Number int64
	// Template is the observed template; Found is false if weir must create it.
	Template observed.Template
	Found    bool
	// Foreign reports whether the wanted content is in a version that weir did not make. TakenOver
	// and Kept are set by the planner of groups.
	Foreign, TakenOver bool
	// HasImage reports whether the version belongs to a template that the pool brings along, and
	// names an image.
	HasImage bool
	// Image is the version's image, empty if it names none or is unknown.
	Image string
	Kept  map[int64]bool
	// Alike is the set of instance ids that run the same configuration from another source: another
	// launch template or a launch configuration.
	Alike map[string]bool
	// want is the content of the version, nil if somebody else makes the template.
	want *Want
}

func (w Version) Made() bool { return w.Ref.Version == "" }

// Version returns the number as AWS writes it.
func (w Version) Version() string { return strconv.FormatInt(w.Number, 10) }

// Plan plans a pool's launch template and returns the wanted version. inUse lists versions that the
// group or nodegroup has. If one of them has the wanted content, no new version is needed. ok is
// false if the wanted version is unknown.
func (c Planner) Plan(pool *intent.Pool, want *Want, inUse []observed.TemplateRef) (w Version, ok bool) {
	w, ok = c.version(pool, want, inUse)
	if ok && want != nil {
		w.Image = w.Content(want).ImageID
		c.Pool.Image = w.Image
	}
	return w, ok
}

// version returns the version that a pool must use, and plans it if it does not exist. ok is false
// while facts are missing or if the pool is blocked.
func (c Planner) version(pool *intent.Pool, want *Want, inUse []observed.TemplateRef) (w Version, ok bool) {
	if pool.LaunchConfig != nil {
		content := c.contentOf(pool)
		return content.Version, content.Known
	}
	if pool.ForeignTemplate != nil {
		return c.foreignVersion(pool, inUse)
	}
	t, found := c.In.State.Templates[want.name]
	if !found {
		if !c.In.State.Absent.Templates[want.name] {
			c.Needs.TemplateNames = append(c.Needs.TemplateNames, want.name)
			return w, false
		}
		want.keeps = false // there is nothing to keep
		return c.createTemplate(pool, want), true
	}
	claim := model.Claim{Resource: step.LaunchTemplate, Name: want.name}
	if o := c.In.Policy.Owns(t.Tags, c.In.Fleet.Wanted[claim], c.In.Fleet.Whole); !o.Ours && !c.adoptTemplate(pool, want, &t, &o) {
		c.Conflict(pool, step.LaunchTemplate, want.name, o)
		return w, false
	}
	if c.Unread(pool, "the versions of the launch template "+t.Name, c.In.State.Unread.Versions[t.Name]) {
		return w, false
	}
	candidates, read := c.candidates(t, inUse)
	if !read {
		return w, false
	}
	if v, ok := want.findIn(t, candidates, inUse); ok {
		c.noteNewerImage(pool, want, t, v)
		c.noteForeignVersion(pool, t, []*Want{want}, []int64{v.Number})
		c.noteUnkept(pool, want, t, v)
		noteReviewed(c.Pools, []*intent.Pool{pool}, want, v)
		c.prune(pool, want, t, pruning{wanted: []int64{v.Number}, inUse: inUse})
		c.tagTemplate(pool, want, t)
		return want.have(t, v), true
	}
	want.keepPresent(t, candidates, inUse)
	// Pruned first: at EC2's quota of versions no further one could be made.
	c.prune(pool, want, t, pruning{makes: true, inUse: inUse})
	c.tagTemplate(pool, want, t)
	return c.makeVersion(pool, want, t, t.LatestVersion+1, candidates, inUse), true
}

// have returns the Version for an existing version.
func (w *Want) have(t observed.Template, v observed.TemplateVersion) Version {
	return Version{want: w, Template: t, Found: true, Foreign: !MadeByWeir(v), Number: v.Number, Ref: observed.TemplateRef{ID: t.ID, Name: t.Name, Version: strconv.FormatInt(v.Number, 10)}}
}

func (c Planner) tagTemplate(pool *intent.Pool, want *Want, t observed.Template) {
	put, remove := model.MissingTags(want.tags, t.Tags)
	if len(put)+len(remove) == 0 {
		return
	}
	c.Step(pool, step.Step{
		Verb: step.Update, Resource: step.LaunchTemplate, Name: t.Name, Reason: "tags differ",
		Changes: model.TagChanges(pool, put, remove, t.Tags),
		Do:      step.TagLaunchTemplate{Template: observed.TemplateRef{ID: t.ID, Name: t.Name}, Put: put, Remove: remove},
	})
}

// makeVersion plans a new version. Its changes are relative to the version in use, or to the newest
// version if that is unknown.
func (c Planner) makeVersion(pool *intent.Pool, want *Want, t observed.Template, number int64, candidates []observed.TemplateVersion, inUse []observed.TemplateRef) Version {
	before := observed.TemplateVersion{Number: t.LatestVersion}
	if len(candidates) > 0 {
		before = candidates[0]
	}
	for _, ref := range inUse {
		if v, ok := t.Versions[model.VersionOf(t, ref)]; ok {
			before = v
			break
		}
	}
	changes := templateChanges(c.In, pool, before, want.Data)
	why := model.ChangeWords(changes)
	if s, ours := content.DescriptionHashes(before.Description); ours && s.Source == want.source && want.follow && before.Data.ImageID != want.Data.ImageID {
		why = "a newer image is published, which the pool follows: " + why
	}
	description := want.description(c.In.Commit, "")
	for _, v := range candidates {
		if want.mislabeled(v) {
			why = "version " + strconv.FormatInt(v.Number, 10) + " is tagged as the desired one, but its contents differ: " + why
			description = want.description(c.In.Commit, confirmation(v, number))
			break
		}
	}
	c.noteImage(pool, want)
	if len(changes) == 0 && before.Number > 0 {
		why = "version " + strconv.FormatInt(before.Number, 10) + " no longer exists"
	}
	c.Step(pool, step.Step{
		Verb: step.Update, Resource: step.LaunchTemplate, Name: t.Name,
		Reason:  "version " + strconv.FormatInt(number, 10) + ", from version " + strconv.FormatInt(before.Number, 10) + ": " + why,
		Changes: changes,
		Do: step.CreateLaunchTemplateVersion{
			Template: observed.TemplateRef{ID: t.ID, Name: t.Name}, Description: description, Data: want.Data,
			// The token includes the observed latest version: the same content, wanted again after
			// another version, is a new request.
			Token: content.ShortHash([]byte(t.ID), []byte(strconv.FormatInt(t.LatestVersion, 10)), []byte(description), content.Canonical(want.Data)),
		},
	})
	return Version{want: want, Template: t, Found: t.ID != "", Number: number, Ref: observed.TemplateRef{ID: t.ID, Name: t.Name, Content: content.Of(description)}}
}

// noteNewerImage reports that a newer image is published than the wanted version has.
func (c Planner) noteNewerImage(pool *intent.Pool, want *Want, t observed.Template, wanted observed.TemplateVersion) {
	if !want.published() || want.newest == nil || pool.FollowImages && c.In.Base != nil {
		return
	}
	if want.newest.ID != wanted.Data.ImageID && (want.keepsImage() || want.Data.ImageID == wanted.Data.ImageID) {
		when := "weir uses it when the pool's launch configuration changes; the annotation weir.dev/ami-policy: follow rolls out newer images at once"
		if pool.FollowImages {
			when = "it is rolled out separately, after the changes of the commit"
		}
		c.Note(diag.Info, pool, intent.Path{"spec", "awsLaunchTemplate"}, "newer-image",
			"a newer image "+named(want.newest.ID, want.newest.Words())+" is published; version "+strconv.FormatInt(wanted.Number, 10)+" of the launch template "+t.Name+" stays with "+wanted.Data.ImageID, when)
	}
}

// noteForeignVersion reports that somebody else made the newest version, and that the pool stays on
// the wanted versions.
func (c Planner) noteForeignVersion(pool *intent.Pool, t observed.Template, wants []*Want, wanted []int64) {
	newest, read := t.Versions[t.LatestVersion]
	if !read || slices.Contains(wanted, newest.Number) {
		return
	}
	other := func(w *Want) bool { return !MadeByWeir(newest) && !w.is(newest) || w.mislabeled(newest) }
	if slices.ContainsFunc(wants, other) {
		var stays []string
		for _, n := range wanted {
			stays = append(stays, "version "+strconv.FormatInt(n, 10))
		}
		c.Note(diag.Warning, pool, nil, "foreign-version",
			"version "+strconv.FormatInt(newest.Number, 10)+" of the launch template "+t.Name+" was created outside weir; the pool stays on "+strings.Join(stays, ", "),
			"delete the version, or write what it changes in Git")
	}
}

// candidates returns the versions that may have the wanted content: the newest, then the versions
// in use. read is false while one of them is not read yet.
func (c Planner) candidates(t observed.Template, inUse []observed.TemplateRef) (out []observed.TemplateVersion, read bool) {
	numbers := []int64{t.LatestVersion}
	for _, ref := range inUse {
		if n := model.VersionOf(t, ref); n > 0 && ref.ID == t.ID && !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	read = true
	for _, n := range numbers {
		if v, known := c.Version(t, n); known {
			out = append(out, v)
		} else {
			read = read && t.Missing[n]
		}
	}
	return out, read
}

// description returns the version description for the wanted content, with a confirmation if there
// is one.
func (w *Want) description(c content.Commit, confirmation string) string {
	hashes := w.body() + ":" + w.source
	if w.source == "" {
		hashes = w.body() + ":" + content.SourceHash(w.Data, w.lookup)
	}
	if confirmation != "" {
		hashes += ":" + confirmation
	}
	return content.Describe(hashes, c)
}

func (c Planner) createTemplate(pool *intent.Pool, want *Want) Version {
	description := want.description(c.In.Commit, "")
	c.noteImage(pool, want)
	c.Step(pool, step.Step{
		Verb: step.Create, Resource: step.LaunchTemplate, Name: want.name, Reason: "it does not exist",
		Changes: newTemplateChanges(c.In, pool, want),
		Do: step.CreateLaunchTemplate{
			// No client token: the name is unique, and a token would answer
			// with the old template after its deletion.
			Name: want.name, Data: want.Data, Tags: want.tags, Description: description,
		},
	})
	return Version{want: want, Number: 1, Ref: observed.TemplateRef{Name: want.name, Content: content.Of(description)}}
}

// newTemplateChanges returns the fields of a new template. It shows only the template's tags that
// its machines do not get, because the version's fields include those.
func newTemplateChanges(in *model.Input, pool *intent.Pool, want *Want) []step.Change {
	usual := in.UsualTags(pool, want.name, want.tags)
	for _, spec := range want.Data.TagSpecifications {
		for _, t := range spec.Tags {
			usual[t.Key] = t.Value
		}
	}
	for _, key := range []string{observed.TagLaunchConfig, observed.TagCluster} { // derived from the template's name and the pool's cluster, which are in the digest
		usual[key] = want.tags[key]
	}
	return slices.Concat(templateChanges(in, pool, observed.TemplateVersion{}, want.Data), model.NewTags(pool, usual, want.tags))
}

// PlanDefault moves the default version once machines run the wanted one.
func (c Planner) PlanDefault(pool *intent.Pool, w Version) {
	if unproven(c.Work, pool, w) {
		return
	}
	if pool.LaunchConfig != nil {
		c.Pool.RunsShared, c.Pool.TakenOver = true, w.TakenOver
		return
	}
	c.MoveDefault(pool, w)
}

func (c Planner) MoveDefault(pool *intent.Pool, w Version) {
	if !w.movesDefault() {
		return
	}
	c.Step(pool, step.Step{
		Verb: step.Update, Resource: step.LaunchTemplate, Name: w.Template.Name,
		Reason:  "version " + w.Version() + " is what runs",
		Changes: []step.Change{{Field: "defaultVersion", From: w.Template.DefaultVersion, To: w.Number}},
		Do:      step.SetDefaultVersion{Template: w.Ref},
	})
}

// movesDefault reports whether the default version must move to the wanted version. If nothing was
// rolled out, it stays.
func (w Version) movesDefault() bool {
	return w.Found && !w.Made() && !w.Foreign && !w.TakenOver && w.Template.DefaultVersion != w.Number
}

// Resolves reports whether an observed reference means version number of
// template t: pinned, or by an alias that points there now.
func (w Version) Resolves(ref observed.TemplateRef) bool {
	if !w.Found || w.Made() || (ref.ID != "" && ref.ID != w.Template.ID) || (ref.ID == "" && ref.Name != w.Template.Name) {
		return false
	}
	switch ref.Version {
	case "$Latest":
		return w.Template.LatestVersion == w.Number
	case "$Default", "":
		return w.Template.DefaultVersion == w.Number
	}
	return ref.Version == w.Version()
}

// Outlived reports whether a reference is to a version, or to a template of the same name, that no
// longer exists.
func (w Version) Outlived(ref observed.TemplateRef) bool {
	if !w.Found || ref.ID != w.Template.ID {
		return ref.Name == w.Ref.Name && ref.ID != ""
	}
	return w.Template.Missing[model.VersionOf(w.Template, ref)]
}

// unproven reports whether the default version stays because machines that run the wanted version
// are not Ready yet. AWS reports a rollout as successful once they are in service.
func unproven(of *model.Work, pool *intent.Pool, w Version) bool {
	if !w.movesDefault() {
		return false
	}
	message, _ := of.In.Unready(pool)
	if message == "" {
		return false
	}
	of.Note(diag.Warning, pool, nil, "rollout-not-ready", "version "+w.Version()+" of the launch template "+w.Template.Name+" is rolled out, and "+message+
		"; the default version stays "+strconv.FormatInt(w.Template.DefaultVersion, 10), "")
	return true
}
