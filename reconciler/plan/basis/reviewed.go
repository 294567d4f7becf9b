package basis

import (
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// A reviewed plan is applied with the images that it showed, whatever was published
// since: the content of a version, with its image as Git names it, says which version of
// which review it is. So it does not matter how a pull request was merged, nor whether
// its forge has told of that yet.

// ReviewedImage is the image of a version in a plan that somebody reviewed.
type ReviewedImage struct {
	Lookup intent.Lookup `json:"lookup"`
	// ID is the image's; empty where the version keeps the image that the pool has. Words
	// names it for people.
	ID    string `json:"id,omitempty"`
	Words string `json:"words,omitempty"`
	// By says who showed the plan, At when it was made. Outdated says that this is too
	// long ago.
	By       string    `json:"-"`
	At       time.Time `json:"-"`
	Outdated bool      `json:"-"`
}

// ImageCheck asks whether an image is an answer to a lookup.
type ImageCheck struct {
	Lookup intent.Lookup
	ID     string
}
