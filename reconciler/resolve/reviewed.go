package resolve

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// reviewedImage checks that the lookup can still result in the image that a person reviewed. The
// review may be days old, and may have used another role.
type reviewedImage struct {
	imageLookup
	id string
}

// answer returns the reviewed image, or a problem that prevents it.
func (q reviewedImage) answer() observed.Answer {
	if !q.asked() {
		return problem("reviewed-image-gone", "the manifests do not ask AWS for an image")
	}
	now := q.imageLookup.answer()
	if q.waits || now.Image != nil && now.Image.ID == q.id {
		return now
	}
	if q.Lookup.Kind == intent.ImageByName {
		return q.byName()
	}
	if now.Image == nil {
		return now // the owner of the image is unknown
	}
	current := q.facts.images.get(now.Image.ID).value
	return q.bootable(func() observed.Answer {
		im, a, ok := know(q.question, q.facts.reviewed.get(q.id), problem("reviewed-image-gone", "there is no image "+q.id+" any more"))
		switch {
		case !ok:
			return a
		case im.State != "available":
			return problem("reviewed-image-gone", "the image "+q.id+" is "+im.State)
		case withdrawn(im, q.now):
			return problem("reviewed-image-gone", "the image "+q.id+" is deprecated since "+im.DeprecatedAt)
		case im.Owner != current.Owner || im.Architecture != current.Architecture:
			return problem("reviewed-image-gone", "the image "+q.id+" has another owner or architecture than the current image of the manifests")
		}
		return observed.Answer{Image: &im.Image}
	})
}

// byName returns the reviewed image if its name still matches. AWS does not list deprecated images.
func (q reviewedImage) byName() observed.Answer {
	named, a, ok := q.named()
	if !ok {
		return a
	}
	for i := range named {
		if named[i].ID == q.id {
			return observed.Answer{Image: &named[i].Image}
		}
	}
	return problem("reviewed-image-gone", "the image "+q.id+" no longer matches the lookup: "+q.Lookup.String())
}

// withdrawn reports whether the image is deprecated. A time that cannot be parsed counts as past.
func withdrawn(im Image, now time.Time) bool {
	if im.DeprecatedAt == "" {
		return false
	}
	at, err := time.Parse(time.RFC3339, im.DeprecatedAt)
	return err != nil || !at.After(now)
}
