package everyday

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// tokens asks for a service account's token, has it reviewed, uses it, and takes it back.
func tokens(ctx context.Context, p *place) error {
	accounts := p.Client.CoreV1().ServiceAccounts(p.Namespace)
	account, err := accounts.Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "robot"},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made, err := accounts.CreateToken(ctx, "robot", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask for a token: %w", err)
	}
	p.Report("request", lasts(made), "a token for an hour")
	token := made.Status.Token
	p.Report("review", p.review(ctx, token, account), "the token is the account's, with its groups")
	bearer := rest.AnonymousClientConfig(p.Config())
	bearer.BearerToken = token
	client, err := kubernetes.NewForConfig(bearer)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	p.Report("self", whoAmI(ctx, client, "system:serviceaccount:"+p.Namespace+":robot"),
		"it knows who it is")
	p.Report("rbac", p.permit(ctx, client), "it may what a role says, and nothing before")
	err = accounts.Delete(ctx, "robot", metav1.DeleteOptions{})
	if err == nil {
		err = revoked(ctx, client)
	}
	p.Report("revoked", err, "nobody takes the token of an account that is gone")
	return nil
}

func lasts(request *authenticationv1.TokenRequest) error {
	left := time.Until(request.Status.ExpirationTimestamp.Time)
	if request.Status.Token == "" || left < 59*time.Minute || left > 61*time.Minute {
		return fmt.Errorf("a token of %d bytes for %s", len(request.Status.Token), left)
	}
	return nil
}

func (p *place) review(ctx context.Context, token string, account *corev1.ServiceAccount) error {
	reviewed, err := p.Client.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}},
		metav1.CreateOptions{})
	if err != nil {
		return err
	}
	user := reviewed.Status.User
	group := "system:serviceaccounts:" + account.Namespace
	switch {
	case !reviewed.Status.Authenticated:
		return fmt.Errorf("not authenticated: %s", reviewed.Status.Error)
	case user.UID != string(account.UID):
		return fmt.Errorf("of %s, not %s", user.UID, account.UID)
	case !slices.Contains(user.Groups, group):
		return fmt.Errorf("in the groups %v", user.Groups)
	}
	no, err := p.Client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token[:len(token)-8] + "AAAAAAAA"},
	}, metav1.CreateOptions{})
	if err == nil && no.Status.Authenticated {
		return errors.New("a token with another signature passes")
	}
	return err
}

func whoAmI(ctx context.Context, client kubernetes.Interface, want string) error {
	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx,
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if name := self.Status.UserInfo.Username; name != want {
		return fmt.Errorf("it is %s, not %s", name, want)
	}
	return nil
}

// permit lets the account read ConfigMaps. Servers learn of roles a moment later.
func (p *place) permit(ctx context.Context, robot kubernetes.Interface) error {
	list := func(ctx context.Context) error {
		_, err := robot.CoreV1().ConfigMaps(p.Namespace).List(ctx, metav1.ListOptions{})
		return err
	}
	if err := list(ctx); !apierrors.IsForbidden(err) {
		return fmt.Errorf("before it may: %w", err)
	}
	rbac := p.Client.RbacV1()
	if _, err := rbac.Roles(p.Namespace).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"},
		}},
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("role: %w", err)
	}
	if _, err := rbac.RoleBindings(p.Namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "robot", Namespace: p.Namespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("role binding: %w", err)
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			err := list(ctx)
			if apierrors.IsForbidden(err) {
				return false, nil
			}
			return err == nil, err
		})
	if err != nil {
		return fmt.Errorf("after it may: %w", err)
	}
	err = robot.CoreV1().ConfigMaps(p.Namespace).Delete(ctx, "any", metav1.DeleteOptions{})
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("what it may not: %w", err)
	}
	return nil
}

// revoked waits until the token is refused. Servers remember tokens for a few seconds.
func revoked(ctx context.Context, robot kubernetes.Interface) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			_, err := robot.AuthenticationV1().SelfSubjectReviews().Create(ctx,
				&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if err != nil && !apierrors.IsUnauthorized(err) {
				return false, err
			}
			return err != nil, nil
		})
}
