package resolve

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// reviewed answers whether an image that a person reviewed, maybe days ago and read by
// another role, still answers the lookup: what the lookup asks for decides, and not who
// says so. A problem says why not.
func (q *question) reviewed(id string) observed.Answer {
	now, asks := q.image()
	if !asks {
		return problem("reviewed-image-gone", "the manifests do not ask AWS for an image")
	}
	if q.waits || now.Image != nil && now.Image.ID == id {
		return now
	}
	if q.Lookup.Kind == intent.ImageByName {
		return q.reviewedByName(id)
	}
	if now.Image == nil {
		return now // of whom it was is not known
	}
	current := q.facts.images.get(now.Image.ID).value
	return q.bootable(func() observed.Answer {
		im, a, ok := know(q, q.facts.reviewed.get(id), problem("reviewed-image-gone", "there is no image "+id+" any more"))
		switch {
		case !ok:
			return a
		case im.State != "available":
			return problem("reviewed-image-gone", "the image "+id+" is "+im.State)
		case withdrawn(im, q.now):
			return problem("reviewed-image-gone", "the image "+id+" is deprecated since "+im.DeprecatedAt)
		case im.Owner != current.Owner || im.Architecture != current.Architecture:
			return problem("reviewed-image-gone", "the image "+id+" is of another owner or architecture than the one that the manifests stand for")
		}
		return observed.Answer{Image: &im.Image}
	})
}

// reviewedByName is reviewed for a name pattern: AWS lists the images that it stands
// for, without deprecated ones.
func (q *question) reviewedByName(id string) observed.Answer {
	named, a, ok := q.namedImages()
	if !ok {
		return a
	}
	for i := range named {
		if named[i].ID == id {
			return observed.Answer{Image: &named[i].Image}
		}
	}
	return problem("reviewed-image-gone", "the image "+id+" is none that "+q.Lookup.String()+" stands for any more")
}

// withdrawn reports whether the image's maker has withdrawn it. A time that cannot be
// read is past.
func withdrawn(im Image, now time.Time) bool {
	if im.DeprecatedAt == "" {
		return false
	}
	at, err := time.Parse(time.RFC3339, im.DeprecatedAt)
	return err != nil || !at.After(now)
}
