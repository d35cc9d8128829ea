package everyday

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// access asks who may what, in the ways that there are.
func access(ctx context.Context, p *place) error {
	p.Report("self", p.mayI(ctx), "an administrator may everything")
	p.Report("subject", p.mayTheTwo(ctx), "a master may, a stranger may not, here and in the cluster")
	p.Report("rules", p.myRules(ctx), "the rules of an administrator say so")
	p.Report("impersonation", p.impersonate(ctx), "an administrator can be somebody who may nothing")
	return nil
}

func (p *place) question(verb string) *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{
		Namespace: p.Namespace, Verb: verb, Group: "apps", Resource: "deployments",
	}
}

func (p *place) mayI(ctx context.Context) error {
	for _, verb := range []string{"get", "create", "deletecollection"} {
		answer, err := p.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
			&authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: p.question(verb)},
			}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if !answer.Status.Allowed {
			return fmt.Errorf("not %s: %s", verb, answer.Status.Reason)
		}
	}
	return nil
}

func (p *place) mayTheTwo(ctx context.Context) error {
	reviews := p.Client.AuthorizationV1()
	for group, want := range map[string]bool{"system:masters": true, "strangers": false} {
		spec := authorizationv1.SubjectAccessReviewSpec{
			User: "somebody", Groups: []string{group}, ResourceAttributes: p.question("delete"),
		}
		anywhere, err := reviews.SubjectAccessReviews().Create(ctx,
			&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		here, err := reviews.LocalSubjectAccessReviews(p.Namespace).Create(ctx,
			&authorizationv1.LocalSubjectAccessReview{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace}, Spec: spec,
			}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("local: %w", err)
		}
		if anywhere.Status.Allowed != want || here.Status.Allowed != want {
			return fmt.Errorf("of %s: %v and, local, %v", group,
				anywhere.Status.Allowed, here.Status.Allowed)
		}
	}
	return nil
}

func (p *place) myRules(ctx context.Context) error {
	answer, err := p.Client.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx,
		&authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: p.Namespace},
		}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for _, rule := range answer.Status.ResourceRules {
		if slices.Contains(rule.Verbs, "*") && slices.Contains(rule.Resources, "*") {
			return nil
		}
	}
	return errors.New("no rule allows everything")
}

func (p *place) impersonate(ctx context.Context) error {
	config := rest.CopyConfig(p.Config())
	config.Impersonate = rest.ImpersonationConfig{UserName: "nobody", Groups: []string{"strangers"}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := whoAmI(ctx, client, "nobody"); err != nil {
		return err
	}
	_, err = client.CoreV1().Secrets(p.Namespace).List(ctx, metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("secrets: %w", err)
	}
	return nil
}
