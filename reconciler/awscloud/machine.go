package awscloud

import (
	"context"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
)

// Machines reads the instances with an id, or with a prefix of one if whole is false. If exactly one matches,
// it also reads its image, its group and the description of its template version. What AWS does not return of
// these is in Notes, because the rest is still useful.
func (c *Cloud) Machines(ctx context.Context, id string, whole bool) ([]observed.Machine, error) {
	found, err := c.reader.Machines(ctx, id, whole)
	if err != nil || len(found) != 1 {
		return found, err
	}
	m := &found[0]
	for _, read := range []func(context.Context, *observed.Machine) string{c.readImage, c.readGroup, c.readDescription} {
		if note := read(ctx, m); note != "" {
			m.Notes = append(m.Notes, note)
		}
	}
	return found, nil
}

// MachinesOf reads instances with their images. It leaves out instances that do not exist. What AWS does not
// return of an image is in the Notes of its instances.
func (c *Cloud) MachinesOf(ctx context.Context, ids []string) ([]observed.Machine, error) {
	found, err := c.reader.MachinesOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	var wanted []string
	for _, m := range found {
		if m.ImageID != "" && !slices.Contains(wanted, m.ImageID) {
			wanted = append(wanted, m.ImageID)
		}
	}
	if len(wanted) == 0 {
		return found, nil
	}
	images, err := c.Images(ctx, resolve.ImageQuery{IDs: wanted})
	for k := range found {
		m := &found[k]
		at := slices.IndexFunc(images, func(i resolve.Image) bool { return i.ID == m.ImageID })
		switch {
		case err != nil:
			m.Notes = append(m.Notes, unreadImage(m.ImageID, err))
		case at >= 0:
			m.Image = images[at].Image
		case m.ImageID != "":
			m.Notes = append(m.Notes, missingImage(m.ImageID))
		}
	}
	return found, nil
}

func unreadImage(id string, err error) string {
	return "the image " + id + " cannot be read: " + sdk.Classify("ec2", "DescribeImages", err).Error()
}

func missingImage(id string) string {
	return "the image " + id + " no longer exists, or is not shared with this account"
}

// readImage adds the image of an instance, and returns why it cannot.
func (c *Cloud) readImage(ctx context.Context, m *observed.Machine) string {
	if m.ImageID == "" {
		return ""
	}
	images, err := c.Images(ctx, resolve.ImageQuery{IDs: []string{m.ImageID}})
	switch {
	case err != nil:
		return unreadImage(m.ImageID, err)
	case len(images) == 0:
		return missingImage(m.ImageID)
	}
	m.Image = images[0].Image
	return ""
}

// readGroup adds the group of an instance, and returns why it cannot.
func (c *Cloud) readGroup(ctx context.Context, m *observed.Machine) string {
	if m.GroupName == "" {
		return ""
	}
	groups, err := c.reader.Groups(ctx, m.GroupName)
	if err != nil {
		return "the Auto Scaling group " + m.GroupName + " cannot be read: " + sdk.Classify("autoscaling", "DescribeAutoScalingGroups", err).Error()
	}
	g, found := groups[m.GroupName]
	if !found {
		return "the Auto Scaling group " + m.GroupName + " no longer exists"
	}
	m.Group = &g
	if _, listed := m.InGroup(); !listed {
		return "the Auto Scaling group " + m.GroupName + " does not list the instance: it has left the group, or is in its warm pool"
	}
	return ""
}

// readDescription adds the description of the template version of an instance, and returns why it cannot.
func (c *Cloud) readDescription(ctx context.Context, m *observed.Machine) string {
	number, err := strconv.ParseInt(m.Template.Version, 10, 64)
	if m.Template.ID == "" || err != nil {
		return ""
	}
	versions, _, gone, err := c.reader.Versions(ctx, m.Template.ID, number)
	switch {
	case err != nil:
		return "version " + m.Template.Version + " of launch template " + m.Template.ID + " cannot be read: " + sdk.Classify("ec2", "DescribeLaunchTemplateVersions", err).Error()
	case gone:
		return "the launch template " + m.Template.ID + " no longer exists"
	case len(versions) == 0:
		return "version " + m.Template.Version + " of launch template " + m.Template.ID + " no longer exists"
	}
	m.Description = versions[0].Description
	return ""
}
