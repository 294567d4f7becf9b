package resolve

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// Architectures that weir knows images of.
const (
	archX86 = "x86_64"
	archARM = "arm64"
)

func (q *question) imageByID(id, why string) observed.Answer {
	im, a, ok := know(q, q.facts.images.get(id), problem("image-not-found", "there is no image "+id+" that this account may launch in this region ("+why+")"))
	switch {
	case !ok:
		return a
	case im.State != "available":
		return problem("image-not-available", "the image "+id+" is "+im.State+" and cannot be launched ("+why+")")
	}
	return observed.Answer{Image: &im.Image}
}

// bootable gives the image that a manifest names, by id or by parameter, if the
// instance type can boot it: EC2 refuses an instance whose image has another
// architecture, and only when it is launched. Images for neither of the two
// architectures that pools have are taken as they are.
func (q *question) bootable(image func() observed.Answer) observed.Answer {
	t := q.Lookup.InstanceType
	if t == "" {
		return image()
	}
	fact := q.facts.architectures.get(t) // asked together with the image
	a := image()
	if a.Image == nil || a.Image.Architecture != archX86 && a.Image.Architecture != archARM {
		return a
	}
	if fact.state == refused {
		a.Code, a.Warning = "architecture-mismatch", "weir cannot tell whether "+t+" can boot the image "+a.Image.ID+": "+refusal(fact.err).Problem
		return a
	}
	arch, none, ok := know(q, fact, problem("instance-type-unknown", "EC2 offers no instance type "+t+" in this region"))
	switch {
	case !ok:
		return none
	case arch != a.Image.Architecture:
		return problem("architecture-mismatch", "the image "+a.Image.ID+" is "+a.Image.Architecture+", but "+t+" is "+arch)
	}
	return a
}

func (q *question) imageByParameter(name string) observed.Answer {
	id, a, ok := know(q, q.facts.parameters.since(name, q.Since), problem("parameter-not-found", "there is no SSM parameter "+name+" in this region"))
	if !ok {
		return a
	}
	// A manifest may name any parameter that weir may read. A value that is not an image id may be
	// anything, so weir neither shows it nor sends it anywhere.
	if !imageID.MatchString(id) {
		return problem("parameter-no-image", "the SSM parameter "+name+" does not have the id of an image")
	}
	return q.imageByID(id, "the SSM parameter "+name+" holds it")
}

// imageID is Auto Scaling's form of the id of an image.
var imageID = regexp.MustCompile(`^ami-[a-z0-9]{1,17}$`)

// architecture is that of the lookup's instance type. A pool without one gets
// x86_64, as Cluster API Provider AWS has it.
func (q *question) architecture() (arch string, a observed.Answer, ok bool) {
	t := q.Lookup.InstanceType
	if t == "" {
		return archX86, a, true
	}
	return know(q, q.facts.architectures.get(t), problem("instance-type-unknown", "EC2 offers no instance type "+t+" in this region"))
}

// imageForEKS reads the image that EKS publishes for a Kubernetes version. Amazon
// Linux 2's for graphics cards exist for x86_64 only.
func (q *question) imageForEKS() observed.Answer {
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
	return q.imageByParameter(name)
}

// releasePaths are the middles of the paths of parameters with the releases of
// nodegroups, by EKS's amiType ("Retrieve recommended Amazon Linux AMI IDs" of the EKS user
// guide).
var releasePaths = map[string]string{
	"AL2023_x86_64_STANDARD": "/amazon-linux-2023/x86_64/standard",
	"AL2023_ARM_64_STANDARD": "/amazon-linux-2023/arm64/standard",
	"AL2023_x86_64_NVIDIA":   "/amazon-linux-2023/x86_64/nvidia",
	"AL2023_ARM_64_NVIDIA":   "/amazon-linux-2023/arm64/nvidia",
	"AL2023_x86_64_NEURON":   "/amazon-linux-2023/x86_64/neuron",
	"AL2_x86_64":             "/amazon-linux-2",
	"AL2_x86_64_GPU":         "/amazon-linux-2-gpu",
	"AL2_ARM_64":             "/amazon-linux-2-arm64",
}

// releaseName is the form of a release of Amazon Linux.
var releaseName = regexp.MustCompile(`^\d+\.\d+\.\d+-\d{8}$`)

// release reads the newest release that EKS publishes for an amiType.
func (q *question) release() observed.Answer {
	path := releasePaths[q.Lookup.Name]
	if path == "" {
		return problem("image-lookup-unknown", "weir does not know where EKS says which release of "+q.Lookup.Name+" is the newest")
	}
	version, ok := minorVersion(q.Lookup.Version)
	if !ok {
		return problem("version-unknown", "the Kubernetes version "+strconv.Quote(q.Lookup.Version)+" is not of the form 1.31 or v1.31.2")
	}
	name := "/aws/service/eks/optimized-ami/" + version + path + "/recommended/release_version"
	value, a, ok := know(q, q.facts.parameters.since(name, q.Since), problem("parameter-not-found", "there is no SSM parameter "+name+" in this region"))
	switch {
	case !ok:
		return a
	case !releaseName.MatchString(value):
		return problem("parameter-no-image", "the SSM parameter "+name+" does not hold a release")
	}
	return observed.Answer{Release: value}
}

// eksPath is the middle of the parameter's path for an eksLookupType ("Retrieve
// recommended Amazon Linux AMI IDs" of the EKS user guide), and whether the
// architecture decides.
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

// minorVersion returns "1.31" of "1.31", "v1.31" or "v1.31.2".
func minorVersion(v string) (string, bool) {
	parts := strings.Split(strings.TrimPrefix(v, "v"), ".")
	if len(parts) < 2 {
		return "", false
	}
	for _, p := range parts[:2] {
		if _, err := strconv.ParseUint(p, 10, 16); err != nil {
			return "", false
		}
	}
	return parts[0] + "." + parts[1], true
}

func (q *question) imageByName() observed.Answer {
	named, a, ok := q.namedImages()
	if !ok {
		return a
	}
	im := named[0]
	if _, known := q.facts.images.facts[im.ID]; !known { // who names it in a plan asks by id
		q.facts.images.put(im.ID, im, q.now)
	}
	return observed.Answer{Image: &im.Image}
}

// namedImages are the images that a name, an owner and an architecture stand for, the
// newest first.
func (q *question) namedImages() ([]Image, observed.Answer, bool) {
	arch, a, ok := q.architecture()
	if !ok {
		return nil, a, false
	}
	return know(q, q.facts.namedImages.since(imageKey(q.Lookup.Owner, q.Lookup.Name, arch), q.Since),
		problem("image-not-found", "no available image of owner "+q.Lookup.Owner+" is named "+q.Lookup.Name+" and has the architecture "+arch))
}

// newestFirst orders images by when they were created, the last one first; of two made
// at the same moment that with the greater id, so that the choice is always the same.
func newestFirst(images []Image) {
	slices.SortFunc(images, func(a, b Image) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
}

// supported picks the architecture that weir uses of those that an instance type has.
func supported(architectures []string) (string, bool) {
	for _, a := range architectures {
		if a == archX86 || a == archARM {
			return a, true
		}
	}
	return "", false
}
