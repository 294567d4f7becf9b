package observed

import (
	"strings"

	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Words describes an image for people: kind, architecture and date.
func (im *Image) Words() string {
	what := im.Name
	if of, version := im.Family(); of != "" {
		what = of + " " + version
	}
	return joinWords(what, im.Architecture, im.day())
}

// eksName matches the names of the images that EKS publishes.
// Assumed of AWS: eks-image-names.
var eksName = lazyregexp.New(`^amazon-eks-(?:(gpu|arm64)-)?node-(?:(al2023)-(?:x86_64|arm64)-(standard|nvidia|neuron)-)?(1\.\d+)-v\d+$`)

// capaName matches the names of the images that Cluster API Provider AWS publishes.
var capaName = lazyregexp.New(`^capa-ami-(.+)-v?(1\.\d+\.\d+)-\d+$`)

// Family returns the kind of a published image and its Kubernetes version. Both are empty if the name is of
// no known form.
func (im *Image) Family() (of, version string) {
	if m := capaName.FindStringSubmatch(im.Name); m != nil {
		return "CAPA " + m[1], m[2]
	}
	m := eksName.FindStringSubmatch(im.Name)
	switch {
	case m == nil:
		return "", ""
	case m[2] == "" && m[1] == "gpu":
		return "EKS AL2 GPU", m[4]
	case m[2] == "":
		return "EKS AL2", m[4]
	case m[3] == "standard":
		return "EKS AL2023", m[4]
	}
	return "EKS AL2023 " + m[3], m[4]
}

func (im *Image) day() string { return im.CreatedAt[:min(len("2006-01-02"), len(im.CreatedAt))] }

// ImageMove describes the change from one image to another. It shows both values of what differs, and one
// value of the rest. Either image may be nil.
func ImageMove(from, to *Image) string {
	switch {
	case from == nil && to == nil:
		return ""
	case from == nil:
		return to.Words()
	case to == nil:
		return from.Words() + " →"
	}
	was, before := from.Family()
	is, now := to.Family()
	if was != is || is == "" {
		return from.Words() + " → " + to.Words()
	}
	day := to.day()
	if before == now {
		day = moved(from.day(), day)
	}
	return joinWords(is+" "+moved(before, now), moved(from.Architecture, to.Architecture), day)
}

func moved(from, to string) string {
	if from == to || from == "" {
		return to
	}
	return from + " → " + to
}

func joinWords(words ...string) string {
	var said []string
	for _, w := range words {
		if w != "" {
			said = append(said, w)
		}
	}
	return strings.Join(said, ", ")
}
