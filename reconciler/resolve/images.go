package resolve

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// The architectures that weir knows.
const (
	archX86 = "x86_64"
	archARM = "arm64"
)

// imageLookup finds the image that a lookup asks for.
type imageLookup struct{ *question }

// asked reports whether the lookup asks for an image.
func (q imageLookup) asked() bool {
	switch q.Lookup.Kind {
	case intent.ImageByID, intent.ImageByParameter, intent.ImageForEKS, intent.ImageByName:
		return true
	}
	return false
}

// answer answers a lookup for which asked is true.
func (q imageLookup) answer() observed.Answer {
	switch q.Lookup.Kind {
	case intent.ImageByID:
		return q.bootable(func() observed.Answer { return q.byID(q.Lookup.Name, "ami.id names it") })
	case intent.ImageByParameter:
		return q.bootable(func() observed.Answer { return q.byParameter(q.Lookup.Name) })
	case intent.ImageForEKS:
		return q.forEKS()
	default:
		return q.byName()
	}
}

// byID returns an image that can be launched. why describes the place that names the image.
func (q imageLookup) byID(id, why string) observed.Answer {
	im, a, ok := know(q.question, q.facts.images.get(id), problem("image-not-found", "there is no image "+id+" that this account may launch in this region ("+why+")"))
	switch {
	case !ok:
		return a
	case im.State != "available":
		return problem("image-not-available", "the image "+id+" is "+im.State+" and cannot be launched ("+why+")")
	}
	return observed.Answer{Image: &im.Image}
}

// bootable returns an image if the lookup's instance type can boot it. EC2 refuses an image of
// another architecture only at the launch of an instance. bootable does not check images for
// architectures that weir does not know.
func (q imageLookup) bootable(image func() observed.Answer) observed.Answer {
	t := q.Lookup.InstanceType
	if t == "" {
		return image()
	}
	fact := q.facts.architectures.get(t) // before the image, so that one round reads both
	a := image()
	if a.Image == nil || a.Image.Architecture != archX86 && a.Image.Architecture != archARM {
		return a
	}
	if fact.state == refused {
		a.Code, a.Warning = "architecture-mismatch", "weir cannot tell whether "+t+" can boot the image "+a.Image.ID+": "+refusal(fact.err).Problem
		return a
	}
	arch, none, ok := know(q.question, fact, problem("instance-type-unknown", "EC2 offers no instance type "+t+" in this region"))
	switch {
	case !ok:
		return none
	case arch != a.Image.Architecture:
		return problem("architecture-mismatch", "the image "+a.Image.ID+" is "+a.Image.Architecture+", but "+t+" is "+arch)
	}
	return a
}

func (q imageLookup) byParameter(name string) observed.Answer {
	id, a, ok := know(q.question, q.facts.parameters.since(name, q.Since), problem("parameter-not-found", "there is no SSM parameter "+name+" in this region"))
	if !ok {
		return a
	}
	// A manifest may name any parameter that weir may read. A value that is not an image id may be
	// anything, so weir neither shows it nor sends it anywhere.
	if !imageID.MatchString(id) {
		return problem("parameter-no-image", "the SSM parameter "+name+" does not contain the id of an image")
	}
	return q.byID(id, "the SSM parameter "+name+" names it")
}

// imageID is Auto Scaling's form of the id of an image.
var imageID = lazyregexp.New(`^ami-[a-z0-9]{1,17}$`)

// architecture returns the architecture of the lookup's instance type. Without an instance type it is
// x86_64, as in Cluster API Provider AWS.
func (q imageLookup) architecture() (arch string, a observed.Answer, ok bool) {
	t := q.Lookup.InstanceType
	if t == "" {
		return archX86, a, true
	}
	return know(q.question, q.facts.architectures.get(t), problem("instance-type-unknown", "EC2 offers no instance type "+t+" in this region"))
}

// forEKS returns the image that EKS publishes for a Kubernetes version. Images of Amazon Linux 2 for
// graphics cards exist for x86_64 only.
func (q imageLookup) forEKS() observed.Answer {
	version, ok := minorVersion(q.Lookup.Version)
	if !ok {
		return problem("version-unknown", "the Kubernetes version "+strconv.Quote(q.Lookup.Version)+" is not of the form 1.31 or v1.31.2")
	}
	path, byArch := eksPath(q.Lookup.Name)
	if path == "" {
		return problem("image-lookup-unknown", "there is no EKS image of the type "+strconv.Quote(q.Lookup.Name))
	}
	arch := archX86
	if byArch {
		a, answer, known := q.architecture()
		if !known {
			return answer
		}
		arch = a
	}
	name := "/aws/service/eks/optimized-ami/" + version + strings.ReplaceAll(path, "{arch}", arch) + "/recommended/image_id"
	if q.Lookup.Name == "AmazonLinux" && arch == archARM {
		name = "/aws/service/eks/optimized-ami/" + version + "/amazon-linux-2-arm64/recommended/image_id"
	}
	return q.byParameter(name)
}

// eksPath returns the middle of the parameter's path for an eksLookupType, and whether there is one
// for each architecture. See "Retrieve recommended Amazon Linux AMI IDs" in the EKS user guide.
func eksPath(lookupType string) (path string, byArch bool) {
	switch lookupType {
	case "AmazonLinux":
		return "/amazon-linux-2", true
	case "AmazonLinuxGPU":
		return "/amazon-linux-2-gpu", false
	case "AmazonLinux2023":
		return "/amazon-linux-2023/{arch}/standard", true
	case "AmazonLinux2023GPU":
		return "/amazon-linux-2023/{arch}/nvidia", true
	}
	return "", false
}

// byName returns the newest image with the lookup's name.
func (q imageLookup) byName() observed.Answer {
	named, a, ok := q.named()
	if !ok {
		return a
	}
	im := named[0]
	if _, known := q.facts.images.facts[im.ID]; !known { // a plan with this image looks it up by id
		q.facts.images.put(im.ID, im, q.now)
	}
	return observed.Answer{Image: &im.Image}
}

// named returns the images with the lookup's name, owner and architecture, the newest first.
func (q imageLookup) named() ([]Image, observed.Answer, bool) {
	arch, a, ok := q.architecture()
	if !ok {
		return nil, a, false
	}
	return know(q.question, q.facts.namedImages.since(imageKey(q.Lookup.Owner, q.Lookup.Name, arch), q.Since),
		problem("image-not-found", "no available image of owner "+q.Lookup.Owner+" is named "+q.Lookup.Name+" and has the architecture "+arch))
}

// newestFirst sorts images by the time of their creation, the latest first, and then by id, so that
// the choice is always the same.
func newestFirst(images []Image) {
	slices.SortFunc(images, func(a, b Image) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
}

// supported returns the first architecture of an instance type that weir supports.
func supported(architectures []string) (string, bool) {
	for _, a := range architectures {
		if a == archX86 || a == archARM {
			return a, true
		}
	}
	return "", false
}
