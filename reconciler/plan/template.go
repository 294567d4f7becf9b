package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// templates plans launch templates.
type templates struct {
	*work
	// shared are the templates that pools share, by the key of the AWSLaunchConfig.
	shared map[string]*sharedTemplate
	// images are the canonical forms of images that pools name, each worked out once.
	images map[intent.Lookup][]byte
}

func (c templates) fork() templates {
	c.work = c.work.fork()
	return c
}

// wantedVersion is the template version that a pool's machines should run.
type wantedVersion struct {
	// ref has an empty Version where a step of this plan makes it.
	ref observed.TemplateRef
	// number is the version's number, predicted where it is yet to be made.
	number int64
	// template is the observed template; found is false where it is to be created.
	template observed.Template
	found    bool
	// foreign says that the wanted content is in a version which weir did not make.
	// handover and spared are as spare finds them.
	foreign, handover bool
	// hasImage says that the version is of a template which the pool brings along,
	// and names an image.
	hasImage bool
	spared   map[int64]bool
	// want is what the version holds; nil where somebody else makes the template.
	want *wantTemplate
}

func (w wantedVersion) made() bool { return w.ref.Version == "" }

// version is the number as AWS writes it.
func (w wantedVersion) version() string { return strconv.FormatInt(w.number, 10) }

// planTemplate plans a pool's launch template and says which version of it is
// wanted. inUse are versions that the group or nodegroup has: content that it
// already has needs no new version. ok is false where the wanted version cannot
// be said yet or at all.
func (c templates) planTemplate(pool *intent.Pool, want *wantTemplate, inUse []observed.TemplateRef) (w wantedVersion, ok bool) {
	if pool.LaunchConfig != nil {
		content := c.contentOf(pool)
		return content.version, content.known
	}
	if pool.ForeignTemplate != nil {
		return c.foreignVersion(pool, inUse)
	}
	t, found := c.in.State.Templates[want.name]
	if !found {
		if !c.in.State.Absent.Templates[want.name] {
			c.needs.TemplateNames = append(c.needs.TemplateNames, want.name)
			return w, false
		}
		want.keeps = false // there is nothing to keep
		if c.tooSmall(pool, want) {
			return w, false
		}
		return c.createTemplate(pool, want), true
	}
	claim := Claim{Resource: step.LaunchTemplate, Name: want.name}
	if o := c.in.Policy.owns(t.Tags, c.in.Fleet.Wanted[claim], c.in.Fleet.Whole); !o.ours && !c.adoptTemplate(pool, want, &t, &o) {
		c.conflict(pool, step.LaunchTemplate, want.name, o)
		return w, false
	}
	if c.unread(pool, "the versions of the launch template "+t.Name, c.in.State.Unread.Versions[t.Name]) {
		return w, false
	}
	candidates, read := c.candidates(t, inUse)
	if !read {
		return w, false
	}
	if v, ok := want.among(t, candidates, inUse); ok {
		c.noteNewerImage(pool, want, t, v)
		c.noteForeignVersion(pool, t, []*wantTemplate{want}, []int64{v.Number})
		c.noteUnkept(pool, want, t, v)
		c.holds([]*intent.Pool{pool}, want, v)
		c.prune(pool, want, t, pruning{wanted: []int64{v.Number}, inUse: inUse})
		c.tagTemplate(pool, want, t)
		return want.have(t, v), true
	}
	want.keepPresent(t, candidates, inUse)
	if c.tooSmall(pool, want) {
		return w, false
	}
	// Pruned first: at EC2's quota of versions no further one could be made.
	c.prune(pool, want, t, pruning{makes: true, inUse: inUse})
	c.tagTemplate(pool, want, t)
	return c.makeVersion(pool, want, t, t.LatestVersion+1, candidates, inUse), true
}

// have is a wanted version that exists.
func (w *wantTemplate) have(t observed.Template, v observed.TemplateVersion) wantedVersion {
	return wantedVersion{want: w, template: t, found: true, foreign: !madeByWeir(v), number: v.Number, ref: observed.TemplateRef{ID: t.ID, Name: t.Name, Version: strconv.FormatInt(v.Number, 10)}}
}

func (c templates) tagTemplate(pool *intent.Pool, want *wantTemplate, t observed.Template) {
	put, remove := missingTags(want.tags, t.Tags)
	if len(put)+len(remove) == 0 {
		return
	}
	c.step(pool, step.Step{
		Verb: step.Update, Resource: step.LaunchTemplate, Name: t.Name, Reason: "tags differ",
		Changes: tagChanges(pool, put, remove, t.Tags),
		Do:      step.TagLaunchTemplate{Template: observed.TemplateRef{ID: t.ID, Name: t.Name}, Put: put, Remove: remove},
	})
}

// makeVersion plans a new version. It is compared with what the machines have:
// the version that is in use, or the newest where that one is not known.
func (c templates) makeVersion(pool *intent.Pool, want *wantTemplate, t observed.Template, number int64, candidates []observed.TemplateVersion, inUse []observed.TemplateRef) wantedVersion {
	before := observed.TemplateVersion{Number: t.LatestVersion}
	if len(candidates) > 0 {
		before = candidates[0]
	}
	for _, ref := range inUse {
		if v, ok := t.Versions[versionOf(t, ref)]; ok {
			before = v
			break
		}
	}
	changes := c.templateChanges(pool, before, want.data)
	why := changeWords(changes)
	if s, ours := content.DescriptionHashes(before.Description); ours && s.Source == want.source && want.follow && before.Data.ImageID != want.data.ImageID {
		why = "a newer image is published, which the pool follows: " + why
	}
	description := want.description(c.in.Commit, "")
	for _, v := range candidates {
		if want.impostor(v) {
			why = "version " + strconv.FormatInt(v.Number, 10) + " says that it is the wanted one and holds something else: " + why
			description = want.description(c.in.Commit, confirmation(v, number))
			break
		}
	}
	c.tellImage(pool, want)
	if len(changes) == 0 && before.Number > 0 {
		why = "version " + strconv.FormatInt(before.Number, 10) + " is not there to go by"
	}
	c.step(pool, step.Step{
		Verb: step.Update, Resource: step.LaunchTemplate, Name: t.Name,
		Reason:  "version " + strconv.FormatInt(number, 10) + ", from version " + strconv.FormatInt(before.Number, 10) + ": " + why,
		Changes: changes,
		Do: step.CreateLaunchTemplateVersion{
			Template: observed.TemplateRef{ID: t.ID, Name: t.Name}, Description: description, Data: want.data,
			// What was observed is part of the token: the same content wanted
			// again after another version came between is another request.
			Token: content.ShortHash([]byte(t.ID), []byte(strconv.FormatInt(t.LatestVersion, 10)), []byte(description), content.Canonical(want.data)),
		},
	})
	return wantedVersion{want: want, template: t, found: t.ID != "", number: number, ref: observed.TemplateRef{ID: t.ID, Name: t.Name, Content: content.Of(description)}}
}

// versionOf is the number of the version of template t that a reference means, 0
// where it is of another template.
func versionOf(t observed.Template, ref observed.TemplateRef) int64 {
	if ref.ID != t.ID && (ref.ID != "" || ref.Name != t.Name) {
		return 0
	}
	switch ref.Version {
	case "$Latest":
		return t.LatestVersion
	case "$Default", "":
		return t.DefaultVersion
	}
	n, err := strconv.ParseInt(ref.Version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// noteNewerImage says that a newer image is published than the wanted version has.
func (c templates) noteNewerImage(pool *intent.Pool, want *wantTemplate, t observed.Template, wanted observed.TemplateVersion) {
	if !want.published() || want.newest == nil || pool.FollowImages && c.in.Base != nil {
		return
	}
	if want.newest.ID != wanted.Data.ImageID && (want.keepsImage() || want.data.ImageID == wanted.Data.ImageID) {
		when := "it is taken when the pool's launch configuration changes; annotation weir.dev/ami-policy: follow rolls newer images out"
		if pool.FollowImages {
			when = "it is rolled out by itself, after what the commit changes"
		}
		c.note(diag.Info, pool, intent.Path{"spec", "awsLaunchTemplate"}, "newer-image",
			"a newer image "+named(want.newest.ID, want.newest.Words())+" is published; version "+strconv.FormatInt(wanted.Number, 10)+" of the launch template "+t.Name+" stays with "+wanted.Data.ImageID, when)
	}
}

// noteForeignVersion says that the newest version is somebody else's and that the
// wanted ones stay.
func (c templates) noteForeignVersion(pool *intent.Pool, t observed.Template, wants []*wantTemplate, wanted []int64) {
	newest, read := t.Versions[t.LatestVersion]
	if !read || slices.Contains(wanted, newest.Number) {
		return
	}
	other := func(w *wantTemplate) bool { return !madeByWeir(newest) && !w.is(newest) || w.impostor(newest) }
	if slices.ContainsFunc(wants, other) {
		var stays []string
		for _, n := range wanted {
			stays = append(stays, "version "+strconv.FormatInt(n, 10))
		}
		c.note(diag.Warning, pool, nil, "foreign-version",
			"version "+strconv.FormatInt(newest.Number, 10)+" of the launch template "+t.Name+" was made outside weir; the pool stays on "+strings.Join(stays, ", "),
			"delete the version, or write what it changes in Git")
	}
}

// maxCandidates bounds how many versions are looked at for one pool.
const maxCandidates = 6

// candidates are the versions whose content may be the wanted one: the newest,
// then those in use. read is false while one of them is yet to be read.
func (c templates) candidates(t observed.Template, inUse []observed.TemplateRef) (out []observed.TemplateVersion, read bool) {
	numbers := []int64{t.LatestVersion}
	for _, ref := range inUse {
		if n := versionOf(t, ref); n > 0 && ref.ID == t.ID && !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	read = true
	for _, n := range numbers {
		v, known := t.Versions[n]
		switch {
		case known:
			out = append(out, v)
		case !t.Missing[n]:
			c.needs.Versions = append(c.needs.Versions, observed.TemplateRef{ID: t.ID, Name: t.Name, Version: strconv.FormatInt(n, 10)})
			read = false
		}
	}
	return out, read
}

// tooSmall refuses a root volume that cannot hold the image's snapshot. It is
// asked only where a version is made: one that exists keeps its own image.
func (c templates) tooSmall(pool *intent.Pool, want *wantTemplate) bool {
	if want.needs == 0 || want.data.BlockDeviceMappings[0].Ebs.VolumeSize >= want.needs {
		return false
	}
	c.blockf(pool, intent.Path{"spec", "awsLaunchTemplate", "rootVolume", "size"}, "root-volume-too-small",
		"the root volume of "+strconv.Itoa(int(want.data.BlockDeviceMappings[0].Ebs.VolumeSize))+" GiB is smaller than the image's snapshot of "+strconv.Itoa(int(want.needs))+" GiB",
		"write a size of at least "+strconv.Itoa(int(want.needs)))
	return true
}

// description is the version description of the wanted content, with a
// confirmation where the version has one to give.
func (w *wantTemplate) description(c content.Commit, confirmation string) string {
	hashes := w.body() + ":" + w.source
	if w.source == "" {
		hashes = w.body() + ":" + content.SourceHash(w.data, w.lookup)
	}
	if confirmation != "" {
		hashes += ":" + confirmation
	}
	return content.Describe(hashes, c)
}

func (c templates) createTemplate(pool *intent.Pool, want *wantTemplate) wantedVersion {
	description := want.description(c.in.Commit, "")
	c.tellImage(pool, want)
	c.step(pool, step.Step{
		Verb: step.Create, Resource: step.LaunchTemplate, Name: want.name, Reason: "it does not exist",
		Changes: c.newTemplateChanges(pool, want),
		Do: step.CreateLaunchTemplate{
			// No client token: the name is unique, and a token would answer
			// with the old template after somebody deleted it.
			Name: want.name, Data: want.data, Tags: want.tags, Description: description,
		},
	})
	return wantedVersion{want: want, number: 1, ref: observed.TemplateRef{Name: want.name, Content: content.Of(description)}}
}

// newTemplateChanges are what a template is made with. Of its tags those are told
// that its machines do not get too, which are among the version's.
func (c templates) newTemplateChanges(pool *intent.Pool, want *wantTemplate) []step.Change {
	usual := c.in.usualTags(pool, want.name, want.tags)
	for _, spec := range want.data.TagSpecifications {
		for _, t := range spec.Tags {
			usual[t.Key] = t.Value
		}
	}
	for _, key := range []string{observed.TagLaunchConfig, observed.TagCluster} { // the template's name and the pool's cluster, which the digest holds
		usual[key] = want.tags[key]
	}
	return append(c.templateChanges(pool, observed.TemplateVersion{}, want.data), newTags(pool, usual, want.tags)...)
}

// planDefault moves the default version once the wanted one is what runs.
func (c templates) planDefault(pool *intent.Pool, w wantedVersion) {
	if c.unproven(pool, w) {
		return
	}
	if pool.LaunchConfig != nil {
		c.settled, c.handover = true, w.handover
		return
	}
	c.moveDefault(pool, w)
}

func (c templates) moveDefault(pool *intent.Pool, w wantedVersion) {
	if !w.movesDefault() {
		return
	}
	c.step(pool, step.Step{
		Verb: step.Update, Resource: step.LaunchTemplate, Name: w.template.Name,
		Reason:  "version " + w.version() + " is what runs",
		Changes: []step.Change{{Field: "defaultVersion", From: w.template.DefaultVersion, To: w.number}},
		Do:      step.SetDefaultVersion{Template: w.ref},
	})
}

// movesDefault reports whether the default version has to move to the wanted one.
// Where nothing was rolled out, it stays as it was found.
func (w wantedVersion) movesDefault() bool {
	return w.found && !w.made() && !w.foreign && !w.handover && w.template.DefaultVersion != w.number
}

// resolves reports whether an observed reference means version number of
// template t: pinned, or by an alias that points there now.
func (w wantedVersion) resolves(ref observed.TemplateRef) bool {
	if !w.found || w.made() || (ref.ID != "" && ref.ID != w.template.ID) || (ref.ID == "" && ref.Name != w.template.Name) {
		return false
	}
	switch ref.Version {
	case "$Latest":
		return w.template.LatestVersion == w.number
	case "$Default", "":
		return w.template.DefaultVersion == w.number
	}
	return ref.Version == w.version()
}

// outlived reports whether a reference means a version, or a template of the same
// name, that exists no more.
func (w wantedVersion) outlived(ref observed.TemplateRef) bool {
	if !w.found || ref.ID != w.template.ID {
		return ref.Name == w.ref.Name && ref.ID != ""
	}
	return w.template.Missing[versionOf(w.template, ref)]
}

func tagChanges(pool *intent.Pool, put map[string]string, remove []string, have map[string]string) []step.Change {
	var out []step.Change
	for _, k := range slices.Sorted(maps.Keys(put)) {
		if k == observed.TagRevision || k == observed.TagSince {
			continue // nobody wants them: they go along with writes
		}
		var from any
		if v, ok := have[k]; ok {
			from = v
		}
		path := intent.Path{"spec", "additionalTags", k}
		switch k {
		case observed.TagHooks:
			path = intent.Path{"spec", "lifecycleHooks"}
		case observed.TagSuspended:
			path = intent.Path{"spec", "suspendProcesses"}
		}
		out = append(out, step.Change{Field: intent.Path{"tags", k}.String(), From: from, To: put[k], Object: pool.Infrastructure, Path: path})
	}
	for _, k := range remove {
		out = append(out, step.Change{Field: intent.Path{"tags", k}.String(), From: have[k]})
	}
	return out
}
