package asg

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// maxTopics is the maximum number of topics of a group.
const maxTopics = 10

func notificationTypes() []string {
	return []string{"autoscaling:EC2_INSTANCE_LAUNCH", "autoscaling:EC2_INSTANCE_LAUNCH_ERROR", "autoscaling:EC2_INSTANCE_TERMINATE",
		"autoscaling:EC2_INSTANCE_TERMINATE_ERROR", "autoscaling:TEST_NOTIFICATION"}
}

func describeNotificationTypes(rq *request, _ struct{}) error {
	rq.XML.Texts("AutoScalingNotificationTypes", "member", notificationTypes())
	return nil
}

var topicARN = lazyregexp.New(`^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[a-zA-Z0-9_-]{1,256}(\.fifo)?$`)

type putNotificationInput struct {
	groupName
	TopicARN          string
	NotificationTypes []string
}

// Check accepts any well-formed topic, because the emulator has no topics and sends no notifications.
func (in *putNotificationInput) Check() error {
	if !topicARN.MatchString(in.TopicARN) {
		return invalid("Invalid SNS Topic ARN: %s", in.TopicARN)
	}
	for _, kind := range in.NotificationTypes {
		if !slices.Contains(notificationTypes(), kind) {
			return invalid("%q is not a valid Notification Type", kind)
		}
	}
	return nil
}

// putNotification replaces the events of a group that a topic receives.
func putNotification(rq *request, in putNotificationInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	if !g.Notifications.Has(in.TopicARN) && g.Notifications.Len() >= maxTopics {
		return wire.Fail("LimitExceeded", "You've reached the limit on the number of SNS topics: %d", maxTopics)
	}
	g.Notifications.Put(in.TopicARN, slices.Compact(slices.Sorted(slices.Values(in.NotificationTypes))))
	return nil
}

type deleteNotificationInput struct {
	groupName
	TopicARN string
}

// deleteNotification removes a topic. It succeeds for a topic without notifications.
func deleteNotification(rq *request, in deleteNotificationInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	g.Notifications.Remove(in.TopicARN)
	return nil
}

type describeNotificationsInput struct {
	paging
	AutoScalingGroupNames []string
}

func (in *describeNotificationsInput) Check() error { return in.bound(50, 100) }

func describeNotifications(rq *request, in describeNotificationsInput) error {
	groups := &rq.Region.Groups
	var keys []string
	for _, name := range groups.Sorted() {
		if len(in.AutoScalingGroupNames) > 0 && !slices.Contains(in.AutoScalingGroupNames, name) {
			continue
		}
		topics := groups.Get(name).Notifications
		for _, topic := range topics.Sorted() {
			for _, kind := range topics.Get(topic) {
				keys = append(keys, name+"\x00"+topic+"\x00"+kind)
			}
		}
	}
	return writePage(rq, "NotificationConfigurations", keys, in.paging, func(key string) {
		parts := strings.Split(key, "\x00")
		rq.XML.Text("AutoScalingGroupName", parts[0])
		rq.XML.Text("TopicARN", parts[1])
		rq.XML.Text("NotificationType", parts[2])
	})
}
