// Package imageupdates finds pools for which a newer image may be available, and the place in Git to pin
// it. It is pure: the caller passes AWS's answers.
package imageupdates

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Pool is a pool with AWS's facts about its image.
type Pool struct {
	Target, Region, Name string
	// At is the place in Git that pins its image, or would pin it. Ask is the lookup of the newest
	// image.
	At  intent.Pin
	Ask intent.Lookup
	// Has is the pool's current image id or release: the one that Git pins, else the one of its launch
	// template or nodegroup. It is empty if the pool does not exist yet.
	Has string
	// Image is the image Has. It is nil if AWS has no such image, or if Has is a release.
	Image *observed.Image
	// Newest is AWS's answer to Ask.
	Newest observed.Answer
	// Moves says that the pool's image is about to change anyway, for example during an update of its
	// nodegroup to another Kubernetes version.
	Moves bool
	// Unknown is the reason why the pool's image is unknown, or empty.
	Unknown string
}

// Pin is the image that a pool must have in Git.
type Pin struct {
	Target, Region, Pool string
	At                   intent.Pin
	// From is the pool's current image, and To its wanted image, as image ids or releases. FromImage and
	// ToImage are nil for releases, and for images that AWS does not know.
	From, To           string
	FromImage, ToImage *observed.Image
}

// Family is the subject of one pull request: images of one kind, for all Kubernetes versions and
// architectures.
type Family struct {
	Name string
	// Pins are ordered by target and pool. They include at least one for each object to change.
	Pins []Pin
}

// Gap is a pool for which weir cannot tell whether a newer image exists.
type Gap struct{ Target, Pool, Why string }

// Find returns the families in which pools could have a newer image, in order, and the pools for which that
// is unknown.
func Find(pools []Pool) (families []Family, gaps []Gap) {
	byName := map[string][]Pin{}
	var all []Pin
	family := map[[2]string]string{}
	for _, p := range pools {
		a := p.Newest
		pin := Pin{Target: p.Target, Region: p.Region, Pool: p.Name, At: p.At, From: p.Has, To: a.Release, FromImage: p.Image, ToImage: a.Image}
		if a.Image != nil {
			pin.To = a.Image.ID
		}
		switch {
		case p.Unknown != "":
			gaps = append(gaps, Gap{p.Target, p.Name, p.Unknown})
		case p.Ask.Kind == "" || p.Moves || p.Has == "":
		case pin.To == "" && absent(a):
		case pin.To == "":
			gaps = append(gaps, Gap{p.Target, p.Name, cmp.Or(a.Problem, "AWS was not asked")})
		case pin.isNewer():
			all = append(all, pin)
			family[[2]string{p.Target, p.Name}] = FamilyOf(p.Ask, a.Image)
		}
	}
	pins, torn := agree(all)
	for _, p := range torn {
		gaps = append(gaps, Gap{p.Target, p.Pool, "pools that share " + p.At.Object.String() + " need different images: give each Kubernetes version and architecture an object of its own"})
	}
	for _, p := range pins {
		name := family[[2]string{p.Target, p.Pool}]
		byName[name] = append(byName[name], p)
	}
	for name, pins := range byName {
		families = append(families, Family{Name: name, Pins: pins})
	}
	slices.SortFunc(families, func(a, b Family) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(gaps, func(a, b Gap) int {
		return cmp.Or(strings.Compare(a.Target, b.Target), strings.Compare(a.Pool, b.Pool))
	})
	return families, gaps
}

// absent reports whether AWS answered that no such image exists.
func absent(a observed.Answer) bool {
	return a.Code == "image-not-found" || a.Code == "parameter-not-found"
}

// isNewer reports whether To was made after From. An image that AWS no longer has counts as older than any
// other.
func (p *Pin) isNewer() bool {
	switch {
	case p.To == p.From:
		return false
	case p.ToImage == nil:
		return slices.Compare(numbers(p.From), numbers(p.To)) < 0
	}
	return p.FromImage == nil || p.FromImage.CreatedAt < p.ToImage.CreatedAt
}

// numbers returns the numbers in a release such as 1.34.1-20251120, the version first.
func numbers(release string) (out []int) {
	for _, s := range strings.FieldsFunc(release, func(r rune) bool { return r == '.' || r == '-' }) {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}

// agree removes the pins of objects for which pools need different images. It returns these as torn.
func agree(pins []Pin) (out, torn []Pin) {
	type place struct {
		target string
		object intent.ObjectRef
	}
	wants := map[place]string{}
	apart := map[place]bool{}
	for _, p := range pins {
		at := place{p.Target, p.At.Object}
		if before, known := wants[at]; known && before != p.To {
			apart[at] = true
		}
		wants[at] = p.To
	}
	for _, p := range pins {
		if apart[place{p.Target, p.At.Object}] {
			torn = append(torn, p)
		} else {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Pin) int {
		return cmp.Or(strings.Compare(a.Target, b.Target), strings.Compare(a.Pool, b.Pool))
	})
	return out, torn
}

// versionOrArchitecture matches the parts in which images of one family differ, in names of images and
// parameters.
var versionOrArchitecture = lazyregexp.New(`\bv?1\.\d{2}(\.\d+)?\b|x86_64|x86-64|amd64|arm64|aarch64`)

// FamilyOf returns the name of the family for a lookup: the family in the newest image's name, else the
// lookup without Kubernetes versions and architectures.
func FamilyOf(ask intent.Lookup, newest *observed.Image) string {
	if newest != nil {
		if of, _ := newest.Family(); of != "" {
			return of
		}
	}
	switch ask.Kind {
	case intent.NodegroupRelease:
		if of := releases[ask.Name]; of != "" {
			return of
		}
	case intent.ImageForEKS:
		return "EKS " + ask.Name
	}
	return versionOrArchitecture.ReplaceAllString(ask.Name, "*")
}

// releases maps EKS's types of images (amiType) to their families, in the spelling of observed.Image.
var releases = map[string]string{
	"AL2023_x86_64_STANDARD": "EKS AL2023", "AL2023_ARM_64_STANDARD": "EKS AL2023", "AL2023_x86_64_NVIDIA": "EKS AL2023 nvidia", "AL2023_ARM_64_NVIDIA": "EKS AL2023 nvidia",
	"AL2023_x86_64_NEURON": "EKS AL2023 neuron", "AL2_x86_64": "EKS AL2", "AL2_ARM_64": "EKS AL2", "AL2_x86_64_GPU": "EKS AL2 GPU",
}

// Images returns the wanted images and releases of pins, sorted and without duplicates.
func Images(pins []Pin) (out []string) {
	for _, p := range pins {
		out = append(out, p.To)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Print returns a hash of the pins' changes. It stays the same while the changes do.
func Print(pins []Pin) string {
	sum := sha256.New()
	for _, p := range pins {
		for _, s := range []string{p.Target, p.At.Object.String(), p.At.Field.String(), p.At.Remember, p.To} {
			sum.Write([]byte(s + "\x00"))
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
