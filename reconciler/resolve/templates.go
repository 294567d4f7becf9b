package resolve

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// templateCache holds the facts about launch templates that others own.
type templateCache struct {
	byName   *cache[string, Template]
	byID     *cache[string, Template]
	versions *cache[string, TemplateVersion] // by versionKey
	// newest is the greatest number seen as a template's newest version, by the template's id.
	newest map[string]seenVersion
}

// seenVersion is the number of a version, and the time of the last read that returned it.
type seenVersion struct {
	number int64
	at     time.Time
}

// newestUnreadFor is the time after its last read at which a template's newest version is forgotten.
// A template in use is read every templateTTL.
const newestUnreadFor = time.Hour

func newTemplateCache() *templateCache {
	return &templateCache{
		byName: newCache[string, Template](templateTTL), byID: newCache[string, Template](templateTTL),
		versions: newCache[string, TemplateVersion](versionTTL), newest: map[string]seenVersion{},
	}
}

func (t *templateCache) expire(now time.Time) {
	t.byName.expire(now)
	t.byID.expire(now)
	t.versions.expire(now)
	maps.DeleteFunc(t.newest, func(_ string, v seenVersion) bool { return now.Sub(v.at) >= newestUnreadFor })
}

func versionKey(id string, number int64) string { return id + " " + strconv.FormatInt(number, 10) }

// templateLookup answers lookups of launch templates that others own.
type templateLookup struct{ *question }

// answer returns the requested version of a launch template with everything that a plan needs. Its image is
// looked up like an image in a manifest, and must fit the instance types.
func (q templateLookup) answer() observed.Answer {
	l, known := q.Lookup, q.facts.templates.byName
	if l.Kind == intent.TemplateByID {
		known = q.facts.templates.byID
	}
	t, a, ok := know(q.question, known.get(l.Name), problem("launch-template-not-found", "there is no launch template "+l.Name+" in this account and region"))
	if !ok {
		return a
	}
	number := t.Latest
	switch l.Version {
	case intent.LatestVersion:
	case intent.DefaultVersion:
		number = t.Default
	default:
		n, err := strconv.ParseInt(l.Version, 10, 64)
		if err != nil {
			return problem("launch-template-version-not-found", "the launch template "+t.Name+" has no version "+strconv.Quote(l.Version))
		}
		number = n
	}
	v, a, ok := know(q.question, q.facts.templates.versions.get(versionKey(t.ID, number)),
		problem("launch-template-version-not-found", "the launch template "+t.Name+" has no version "+strconv.FormatInt(number, 10)))
	if !ok {
		return a
	}
	out := &observed.ForeignTemplate{ID: t.ID, Name: t.Name, Version: number, Latest: t.Latest, Default: t.Default, Data: v.Data, Requirements: v.Requirements}
	if v.Data.ImageID != "" {
		image := q.image(t.Name, v.Data.ImageID)
		if image.Image == nil {
			return image
		}
		if why, fits := q.fits(out, *image.Image); !fits {
			return why
		}
		out.Image = image.Image
	}
	return observed.Answer{Template: out}
}

// image returns the image that a launch template names by id or by SSM parameter. See "Use a Systems
// Manager parameter instead of an AMI ID" in the EC2 user guide.
func (q templateLookup) image(template, image string) observed.Answer {
	if name, ok := strings.CutPrefix(image, "resolve:ssm:"); ok {
		return imageLookup(q).byParameter(name)
	}
	return imageLookup(q).byID(image, "the launch template "+template+" names it")
}

// fits reports whether an image boots on every instance type of the pool, or on the template's
// instance type if the pool names none. If that is unclear, it reports false.
func (q templateLookup) fits(t *observed.ForeignTemplate, im observed.Image) (why observed.Answer, ok bool) {
	types := intent.SplitList(q.Lookup.InstanceType)
	if len(types) == 0 && t.Data.InstanceType != "" {
		types = []string{t.Data.InstanceType}
	}
	facts := make([]fact[string], len(types))
	for i, name := range types {
		facts[i] = q.facts.architectures.get(name) // so that one round reads them all
	}
	for i, name := range types {
		arch, a, known := know(q.question, facts[i], problem("instance-type-unknown", "EC2 offers no instance type "+name+" in this region"))
		switch {
		case !known && facts[i].state == refused:
			return problem("architecture-mismatch", "weir cannot tell whether "+name+" can boot the image "+im.ID+" of the launch template "+t.Name+": "+a.Problem), false
		case !known:
			return a, false
		case arch != im.Architecture:
			return problem("architecture-mismatch", "the image "+im.ID+" of the launch template "+t.Name+" is "+im.Architecture+", but "+name+" is "+arch), false
		}
	}
	return observed.Answer{}, true
}

// readTemplatesByName reads the launch templates that lookups name by name.
func (r *Resolver) readTemplatesByName(ctx context.Context, now time.Time) error {
	return readBatch(r.facts.templates.byName, now, func(names []string) (map[string]Template, error) {
		found, err := r.cloud.TemplatesByName(ctx, names)
		if err != nil {
			return nil, err
		}
		out := map[string]Template{}
		for _, t := range found {
			if out[t.Name], err = r.corrected(ctx, t); err != nil {
				return nil, err
			}
		}
		return out, nil
	})
}

// readTemplatesByID reads the launch templates that lookups name by id.
func (r *Resolver) readTemplatesByID(ctx context.Context, now time.Time) error {
	return readBatch(r.facts.templates.byID, now, func(ids []string) (map[string]Template, error) {
		found, err := r.cloud.TemplatesByID(ctx, ids)
		if err != nil {
			return nil, err
		}
		out := map[string]Template{}
		for _, t := range found {
			if out[t.ID], err = r.corrected(ctx, t); err != nil {
				return nil, err
			}
		}
		return out, nil
	})
}

// corrected corrects an outdated answer of AWS. The number of the newest version decreases only if
// that version was deleted. Without this check a pool would roll back to the older version and
// then forward again.
func (r *Resolver) corrected(ctx context.Context, t Template) (Template, error) {
	seen := r.facts.templates.newest
	if before := seen[t.ID].number; t.Latest < before {
		_, found, err := r.cloud.TemplateVersion(ctx, t.ID, before)
		if err != nil {
			return t, err
		}
		if found {
			t.Latest = before
		}
	}
	seen[t.ID] = seenVersion{t.Latest, r.now()}
	return t, nil
}

// commonFrom is the number of versions from which weir first reads the newest and the default
// versions of all templates of the account. One call returns 200 of them.
const commonFrom = 20

// readTemplateVersions reads the wanted versions of launch templates. If there are many, it reads common
// versions of all templates together first.
func (r *Resolver) readTemplateVersions(ctx context.Context, now time.Time) error {
	parse := func(key string) (id string, number int64, ok bool) {
		id, text, _ := strings.Cut(key, " ")
		number, err := strconv.ParseInt(text, 10, 64)
		return id, number, err == nil
	}
	versions := r.facts.templates.versions
	if len(versions.wanted) >= commonFrom {
		keys := versions.drain()
		wanted := map[string][]int64{}
		for _, key := range keys {
			if id, number, ok := parse(key); ok {
				wanted[id] = append(wanted[id], number)
			}
		}
		found, err := r.cloud.CommonTemplateVersions(ctx, wanted, len(keys)/2)
		if _, err := refusedBy(err); err != nil {
			return err
		}
		for _, key := range keys {
			id, number, _ := parse(key)
			if v, ok := found[id][number]; ok {
				versions.put(key, v, now)
			} else {
				versions.wanted[key] = true
			}
		}
	}
	return readEach(ctx, versions, now, func(ctx context.Context, key string) (TemplateVersion, bool, error) {
		id, number, ok := parse(key)
		if !ok {
			return TemplateVersion{}, false, nil
		}
		return r.cloud.TemplateVersion(ctx, id, number)
	})
}
