package plan

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
)

func TestImagesAreNamed(t *testing.T) {
	im := func(name, arch, day string) *observed.Image {
		return &observed.Image{ID: "ami-1", Name: name, Architecture: arch, CreatedAt: day + "T09:30:00.000Z"}
	}
	old := im("amazon-eks-node-al2023-x86_64-standard-1.33-v20261104", "x86_64", "2026-11-04")
	for _, tc := range []struct {
		from, to *observed.Image
		want     string
	}{
		{old, im("amazon-eks-node-al2023-x86_64-standard-1.34-v20261118", "x86_64", "2026-11-18"), "EKS AL2023 1.33 → 1.34, x86_64, 2026-11-18"},
		{old, im("amazon-eks-node-al2023-x86_64-standard-1.33-v20261118", "x86_64", "2026-11-18"), "EKS AL2023 1.33, x86_64, 2026-11-04 → 2026-11-18"},
		{old, im("amazon-eks-node-al2023-arm64-standard-1.33-v20261104", "arm64", "2026-11-04"), "EKS AL2023 1.33, x86_64 → arm64, 2026-11-04"},
		{old, im("amazon-eks-node-al2023-x86_64-nvidia-1.34-v20261118", "x86_64", "2026-11-18"), "EKS AL2023 1.33, x86_64, 2026-11-04 → EKS AL2023 nvidia 1.34, x86_64, 2026-11-18"},
		{nil, old, "EKS AL2023 1.33, x86_64, 2026-11-04"},
		{nil, im("amazon-eks-arm64-node-1.32-v20251112", "arm64", "2025-11-12"), "EKS AL2 1.32, arm64, 2025-11-12"},
		{nil, im("amazon-eks-gpu-node-1.32-v20251112", "x86_64", "2025-11-12"), "EKS AL2 GPU 1.32, x86_64, 2025-11-12"},
		{nil, im("capa-ami-ubuntu-24.04-v1.33.0-1762939800", "x86_64", "2025-11-12"), "CAPA ubuntu-24.04 1.33.0, x86_64, 2025-11-12"},
		{nil, im("ours-7", "x86_64", "2025-11-12"), "ours-7, x86_64, 2025-11-12"},
		{nil, &observed.Image{ID: "ami-1"}, ""},
		{nil, nil, ""},
	} {
		if got := observed.ImageMove(tc.from, tc.to); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
