package manifest

import "github.com/weir-gitops/weir/render/userdata"

// userData is the setup as user data has it.
func (s *DiskSetup) userData() *userdata.DiskSetup {
	if s == nil {
		return nil
	}
	out := &userdata.DiskSetup{}
	for _, p := range s.Partitions {
		p.partition.Layout = p.Layout
		out.Partitions = append(out.Partitions, p.partition)
	}
	for _, f := range s.Filesystems {
		f.filesystem.Label = f.Label
		out.Filesystems = append(out.Filesystems, f.filesystem)
	}
	return out
}

// userData is the setup as user data has it.
func (s *KubeadmDiskSetup) userData() *userdata.DiskSetup {
	if s == nil {
		return nil
	}
	out := &userdata.DiskSetup{}
	for _, p := range s.Partitions {
		p.partition.Layout, p.partition.DiskLayout = p.Layout != nil && *p.Layout, p.DiskLayout
		out.Partitions = append(out.Partitions, p.partition)
	}
	for _, f := range s.Filesystems {
		f.filesystem.ReplaceFS = f.ReplaceFS
		out.Filesystems = append(out.Filesystems, f.filesystem)
	}
	return out
}
