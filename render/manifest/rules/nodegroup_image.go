package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// The rules in this file are about the images that EKS chooses for a managed pool. spec.amiType identifies
// them.

// CheckNodegroupVolumes checks a managed pool's disks against the disks of the image that EKS chooses.
func (d *Derived) CheckNodegroupVolumes(s *kinds.AWSManagedMachinePoolSpec) {
	disks, known := s.AMIType.Disks()
	if !known || kinds.ManagedImage(s) {
		return
	}
	lt := s.AWSLaunchTemplate
	if lt == nil {
		device := disks.Root
		if disks.Data != "" {
			device = disks.Data
		}
		checkDiskSize(d.AtPool, path("spec", "diskSize"), int64(intent.Value(s.DiskSize)), device, disks, s.AMIType)
		return
	}
	p := path("spec", "awsLaunchTemplate")
	if lt.RootVolume != nil {
		checkDiskSize(d.AtPool, p.Join("rootVolume", "size"), lt.RootVolume.Size, disks.Root, disks, s.AMIType)
	}
	for i := range lt.NonRootVolumes {
		v, at := &lt.NonRootVolumes[i], p.Join("nonRootVolumes", intent.Index(i))
		if v.DeviceName == disks.Root && lt.RootVolume != nil {
			d.rootDeviceTwice(at.Join("deviceName"), v.DeviceName, string(s.AMIType))
			continue
		}
		checkDiskSize(d.AtPool, at.Join("size"), v.Size, v.DeviceName, disks, s.AMIType)
	}
	if disks.Data != "" {
		noteOSVolume(d.AtPool, lt)
	}
}

// rootDeviceTwice reports a further volume with the device name of the root volume.
func (d *Derived) rootDeviceTwice(at intent.Path, device, image string) {
	root := path("spec", "awsLaunchTemplate", "rootVolume")
	d.Faults.Add(kinds.Fault{Code: "duplicate", Summary: fmt.Sprintf("device %q is the root device of %s, which %s is about", device, image, root),
		Detail: "give the volume another device name, such as /dev/sdb", Ref: d.Infrastructure, Path: at,
		Related: []kinds.RelatedField{{Ref: d.Infrastructure, Path: root, Message: "the root volume"}}})
}

// checkDiskSize reports a volume that is smaller than the volume of the image. For the root volume EKS
// answers "Volume of size 10GB is smaller than snapshot". The snapshot of Bottlerocket's data volume is
// smaller than the volume, so a smaller data volume works but has less space.
func checkDiskSize(atPool kinds.Reporter, at intent.Path, size int64, device string, disks kinds.Disks, image kinds.AMIType) {
	switch {
	case size <= 0:
	case device == disks.Root && size < disks.RootGiB:
		atPool.Error(at, "volume-smaller-than-image", fmt.Sprintf("%s is %d GiB, and the image of %s needs %d GiB on %s", at, size, image, disks.RootGiB, device), fmt.Sprintf("write %d or more", disks.RootGiB))
	case device == disks.Data && size < disks.DataGiB:
		atPool.Warn(at, "volume-smaller-than-image", fmt.Sprintf("%s is %d GiB, and without it containers would have the %d GiB of the image's volume %s", at, size, disks.DataGiB, device), fmt.Sprintf("write more than %d, or leave it out", disks.DataGiB))
	}
}

// noteOSVolume warns of a root volume of Bottlerocket that is likely meant for containers. Containers have a
// separate volume ("Bottlerocket" in the user guide of EKS, and "Volumes" in Bottlerocket's documentation).
func noteOSVolume(atPool kinds.Reporter, lt *kinds.LaunchTemplate) {
	disks, _ := kinds.AMIType("BOTTLEROCKET_").Disks()
	has := func(v kinds.Volume) bool { return v.DeviceName == disks.Data }
	if lt.RootVolume == nil || slices.ContainsFunc(lt.NonRootVolumes, has) {
		return
	}
	at := path("spec", "awsLaunchTemplate", "rootVolume", "size")
	atPool.Warn(at, "os-volume", fmt.Sprintf("%s is the size of Bottlerocket's OS volume %s; containers and their images are on %s, which keeps %d GiB", at, disks.Root, disks.Data, disks.DataGiB),
		fmt.Sprintf("write spec.awsLaunchTemplate.nonRootVolumes: [{deviceName: %s, size: %d}] for them, and leave rootVolume out", disks.Data, lt.RootVolume.Size))
}

// checkLookedUpVolumes checks volumes against an image that is looked up among EKS's images, or by a name
// with "bottlerocket".
func (d *Derived) checkLookedUpVolumes(lt *kinds.LaunchTemplate) {
	image := d.LaunchTemplate.Image
	if strings.Contains(strings.ToLower(image.Name), "bottlerocket") {
		noteOSVolume(d.AtPool, lt)
	}
	if kinds.EKSFamily(image) == "" || lt.RootVolume == nil {
		return
	}
	const device = "/dev/xvda" // of both Amazon Linux 2 and 2023
	for i := range lt.NonRootVolumes {
		if lt.NonRootVolumes[i].DeviceName == device {
			d.rootDeviceTwice(path("spec", "awsLaunchTemplate", "nonRootVolumes", intent.Index(i), "deviceName"), device, "EKS's image "+image.Name)
		}
	}
}

// Releases of images: "Retrieve recommended Amazon Linux AMI IDs", "Bottlerocket AMI release information" and
// "EKS optimized Windows AMI versions" in the user guide of EKS. Releases of Amazon Linux start with a
// Kubernetes version. Releases of Bottlerocket start with Bottlerocket's version.
var (
	releaseAmazonLinux  = lazyregexp.New(`^([0-9]+\.[0-9]+)\.[0-9]+-20[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])$`)
	releaseBottlerocket = lazyregexp.New(`^[0-9]+\.[0-9]+\.[0-9]+-[0-9a-f]{8}$`)
	releaseWindows      = lazyregexp.New(`^([0-9]+\.[0-9]+)-20[0-9]{2}\.(0[1-9]|1[0-2])\.(0[1-9]|[12][0-9]|3[01])$`)
)

// CheckAMIVersion checks the form of spec.amiVersion, and that it is for the Kubernetes version, which is
// empty if the manifests have none. The planner checks that AWS has the release.
func (d *Derived) CheckAMIVersion(s *kinds.AWSManagedMachinePoolSpec, kubernetes string) {
	release, at := intent.Value(s.AMIVersion), path("spec", "amiVersion")
	if release == "" || kinds.ManagedImage(s) {
		return
	}
	form, example := releaseAmazonLinux, "1.34.1-20251112"
	switch s.AMIType.Family() {
	case kinds.FamilyBottlerocket:
		form, example = releaseBottlerocket, "1.50.0-4f3d1c2b"
	case kinds.FamilyWindows:
		form, example = releaseWindows, "1.34-2025.11.12"
	case "":
		return
	}
	m := form.FindStringSubmatch(release)
	if m == nil {
		advice := "leave it out for the newest release"
		if !strings.EqualFold(release, "latest") {
			advice = fmt.Sprintf("write one such as %s, or %s", example, advice)
		}
		d.AtPool.Error(at, "bad-release", fmt.Sprintf("%s is %q, which is not a release of %s", at, release, s.AMIType), advice)
		return
	}
	if len(m) > 1 && kubernetes != "" && m[1] != kubernetes {
		d.AtPool.Error(at, "bad-release", fmt.Sprintf("%s is a release for Kubernetes %s, and the pool's version is %s", at, m[1], kubernetes),
			"write a release for "+kubernetes+", or leave it out for the newest one")
	}
}
