package ec2

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Owners of public images.
const (
	ownerCAPA    = "819546954734" // Cluster API Provider AWS
	ownerAmazon  = "137112412989" // Amazon Linux
	ownerEKS     = "602401143452" // EKS
	ownerRocket  = "651937483462" // Bottlerocket
	ownerUbuntu  = "099720109477" // Canonical
	ownerWindows = "801119661308" // Windows Server by Amazon
	newestMinor  = 34
	oldestMinor  = 29
	lastAL2Minor = 32
)

// patches returns the patch release of a Kubernetes minor version up to which images exist.
func patches(minor int) int {
	return map[int]int{29: 15, 30: 14, 31: 13, 32: 9, 33: 5, 34: 1}[minor]
}

// NewestKubernetes returns the newest minor version that the parameters cover.
func NewestKubernetes() string { return fmt.Sprintf("1.%d", newestMinor) }

// KubernetesVersions returns the minor versions that the parameters cover, oldest first.
func KubernetesVersions() []string {
	var out []string
	for m := oldestMinor; m <= newestMinor; m++ {
		out = append(out, fmt.Sprintf("1.%d", m))
	}
	return out
}

// imageDate returns the creation day of the images of a batch. Batch 0 is the newest, and each further batch
// is four weeks older.
func imageDate(batch int) time.Time {
	return time.Date(2025, 11, 12, 9, 30, 0, 0, time.UTC).AddDate(0, 0, -28*batch)
}

// seedImages creates the public images for pools of instances, named according to their publishers' schemes,
// and the public parameters that name the newest ones.
func seedImages(r *Region) {
	for _, arch := range []string{"x86_64", "arm64"} {
		seedAmazonLinux(r, arch)
		for minor := oldestMinor; minor <= newestMinor; minor++ {
			seedClusterAPI(r, arch, minor)
			seedUbuntuEKS(r, arch, minor)
			seedBottlerocket(r, arch, minor)
			seedAL2023(r, arch, minor)
			if minor <= lastAL2Minor {
				seedAL2(r, arch, minor)
			}
			if arch == "x86_64" { // Windows Server supports no other architecture
				seedWindows(r, minor)
			}
		}
	}
}

// seedClusterAPI creates CAPA's images for all patch releases. The newest of a minor version is built twice.
func seedClusterAPI(r *Region, arch string, minor int) {
	for _, os := range []string{"ubuntu-24.04", "ubuntu-22.04", "flatcar-stable"} {
		root := "/dev/sda1"
		if os == "flatcar-stable" {
			root = "/dev/xvda"
		}
		for patch := 0; patch <= patches(minor); patch++ {
			builds := 1
			if patch == patches(minor) {
				builds = 2
			}
			for build := 0; build < builds; build++ {
				made := imageDate(2*(newestMinor-minor) + patches(minor) - patch + build)
				// Both architectures use one name with different build times.
				stamp := made.Unix()
				if arch == "arm64" {
					stamp += 600
				}
				r.addImage(Image{
					Name:        fmt.Sprintf("capa-ami-%s-v1.%d.%d-%d", os, minor, patch, stamp),
					Description: fmt.Sprintf("Kubernetes 1.%d.%d on %s", minor, patch, os),
					Owner:       ownerCAPA, Architecture: arch, Created: time.Unix(stamp, 0).UTC(),
					RootDevice: root, VolumeGiB: 20,
				})
			}
		}
	}
}

// seedNewest creates an image in two batches, and the parameters of the newer one below a path, in AWS's
// layout: the path itself contains JSON.
func seedNewest(r *Region, path string, name func(batch int) (string, string), im Image) {
	for batch := 1; batch >= 0; batch-- {
		im.Created = imageDate(batch)
		var release string
		im.Name, release = name(batch)
		made := r.addImage(im)
		if batch > 0 || path == "" {
			continue
		}
		r.ssm.AddParameter(path, fmt.Sprintf(`{"schema_version":"2","image_id":"%s","image_name":"%s","release_version":"%s"}`, made.ID, made.Name, release), imageDate(0))
		r.ssm.AddParameter(path+"/image_id", made.ID, imageDate(0))
		r.ssm.AddParameter(path+"/image_name", made.Name, imageDate(0))
		r.ssm.AddParameter(path+"/release_version", release, imageDate(0))
	}
}

func seedAL2(r *Region, arch string, minor int) {
	variants := map[string]string{"amazon-linux-2": "amazon-eks-node", "amazon-linux-2-gpu": "amazon-eks-gpu-node"}
	if arch == "arm64" {
		variants = map[string]string{"amazon-linux-2-arm64": "amazon-eks-arm64-node"}
	}
	for _, variant := range slices.Sorted(maps.Keys(variants)) {
		seedNewest(r, fmt.Sprintf("/aws/service/eks/optimized-ami/1.%d/%s/recommended", minor, variant),
			func(batch int) (string, string) {
				day := imageDate(batch).Format("20060102")
				return fmt.Sprintf("%s-1.%d-v%s", variants[variant], minor, day), fmt.Sprintf("1.%d.%d-%s", minor, patches(minor), day)
			},
			Image{Owner: ownerEKS, OwnerAlias: "amazon", Architecture: arch, RootDevice: "/dev/xvda", VolumeGiB: 20, SnapshotGiB: 4,
				Description: fmt.Sprintf("EKS Kubernetes Worker AMI with AmazonLinux2 image, Kubernetes 1.%d", minor)})
	}
}

func seedAL2023(r *Region, arch string, minor int) {
	for _, variant := range []string{"standard", "nvidia", "neuron"} {
		if variant == "neuron" && arch == "arm64" {
			continue
		}
		seedNewest(r, fmt.Sprintf("/aws/service/eks/optimized-ami/1.%d/amazon-linux-2023/%s/%s/recommended", minor, arch, variant),
			func(batch int) (string, string) {
				day := imageDate(batch).Format("20060102")
				return fmt.Sprintf("amazon-eks-node-al2023-%s-%s-1.%d-v%s", arch, variant, minor, day),
					fmt.Sprintf("1.%d.%d-%s", minor, patches(minor), day)
			},
			Image{Owner: ownerEKS, OwnerAlias: "amazon", Architecture: arch, RootDevice: "/dev/xvda", VolumeGiB: 20,
				Description: fmt.Sprintf("EKS-optimized Kubernetes node based on Amazon Linux 2023, 1.%d", minor)})
	}
}

func seedBottlerocket(r *Region, arch string, minor int) {
	for _, variant := range []string{"", "-nvidia"} {
		base := fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-1.%d%s/%s/latest", minor, variant, arch)
		for batch := 1; batch >= 0; batch-- {
			version := fmt.Sprintf("1.%d.0", 50-batch)
			made := r.addImage(Image{
				Name:  fmt.Sprintf("bottlerocket-aws-k8s-1.%d%s-%s-v%s-%s", minor, variant, arch, version, world.Hash(version, 8)),
				Owner: ownerRocket, OwnerAlias: "amazon", Architecture: arch, Created: imageDate(batch),
				RootDevice: "/dev/xvda", VolumeGiB: 2, DataDevice: "/dev/xvdb", DataGiB: 20,
			})
			if batch == 0 {
				r.ssm.AddParameter(base+"/image_id", made.ID, imageDate(0))
				r.ssm.AddParameter(base+"/image_version", version+"-"+world.Hash(version, 8), imageDate(0))
			}
		}
	}
}

// seedWindows creates the EKS-optimized images of Windows Server. The paths of their parameters are next to
// the paths for all other Windows images.
func seedWindows(r *Region, minor int) {
	for _, edition := range []string{"2019-English-Core", "2019-English-Full", "2022-English-Core", "2022-English-Full"} {
		family := fmt.Sprintf("Windows_Server-%s-EKS_Optimized-1.%d", edition, minor)
		for batch := 1; batch >= 0; batch-- {
			made := r.addImage(Image{
				Name:  family + "-" + imageDate(batch).Format("2006.01.02"),
				Owner: ownerWindows, OwnerAlias: "amazon", Architecture: "x86_64", Platform: "Windows", Created: imageDate(batch),
				RootDevice: "/dev/sda1", VolumeGiB: 50,
			})
			if batch == 0 {
				r.ssm.AddParameter("/aws/service/ami-windows-latest/"+family+"/image_id", made.ID, imageDate(0))
			}
		}
	}
}

func seedUbuntuEKS(r *Region, arch string, minor int) {
	short := map[string]string{"x86_64": "amd64", "arm64": "arm64"}[arch]
	for batch := 1; batch >= 0; batch-- {
		made := r.addImage(Image{
			Name:  fmt.Sprintf("ubuntu-eks/k8s_1.%d/images/hvm-ssd-gp3/ubuntu-noble-24.04-%s-server-%s", minor, short, imageDate(batch).Format("20060102")),
			Owner: ownerUbuntu, Architecture: arch, Created: imageDate(batch), RootDevice: "/dev/sda1", VolumeGiB: 30,
		})
		if batch == 0 {
			r.ssm.AddParameter(fmt.Sprintf("/aws/service/canonical/ubuntu/eks/24.04/1.%d/stable/current/%s/hvm/ebs-gp3/ami-id", minor, short), made.ID, imageDate(0))
		}
	}
}

func seedAmazonLinux(r *Region, arch string) {
	for _, kernel := range []string{"default", "6.1", "6.12"} {
		for batch := 1; batch >= 0; batch-- {
			shown := kernel
			if kernel == "default" {
				shown = "6.1-default"
			}
			made := r.addImage(Image{
				Name:  fmt.Sprintf("al2023-ami-2023.9.%s.0-kernel-%s-%s", imageDate(batch).Format("20060102"), shown, arch),
				Owner: ownerAmazon, OwnerAlias: "amazon", Architecture: arch, Created: imageDate(batch),
				RootDevice: "/dev/xvda", VolumeGiB: 8, Description: "Amazon Linux 2023 AMI",
			})
			if batch == 0 {
				r.ssm.AddParameter(fmt.Sprintf("/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-%s-%s", kernel, arch), made.ID, imageDate(0))
			}
		}
	}
	for batch := 1; batch >= 0; batch-- {
		made := r.addImage(Image{
			Name:  fmt.Sprintf("amzn2-ami-hvm-2.0.%s.0-%s-gp2", imageDate(batch).Format("20060102"), arch),
			Owner: ownerAmazon, OwnerAlias: "amazon", Architecture: arch, Created: imageDate(batch),
			RootDevice: "/dev/xvda", VolumeGiB: 8, Description: "Amazon Linux 2 AMI",
		})
		if batch == 0 {
			r.ssm.AddParameter("/aws/service/ami-amazon-linux-latest/amzn2-ami-hvm-"+arch+"-gp2", made.ID, imageDate(0))
		}
	}
}
