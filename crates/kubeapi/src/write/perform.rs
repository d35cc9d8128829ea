//! Reads, decides, swaps; and again where somebody was faster.

use std::ops::RangeInclusive;

use bytes::Bytes;
use host::Clock;
use object::{ObjectName, Resource};
use serde_json::Value;
use store::Authority;
use store::authority::{Action, Expect, Outcome, Refusal, Swap};
use tokio::sync::Mutex;

use super::admit::Admit;
use super::conduct::{self, Absent};
use super::kinds::service::{AddressRange, Claims, takes_nothing};
use super::options::{DeleteOptions, DryRun};
use super::outcome::{
    encoded, fresh_uuid, parsed, random, refused, shown, stored, stored_bytes, too_busy,
    without_version,
};
use super::patch::{Patch, decoder_words, unreadable};
use super::present::{Current, definitions};
use super::update::{self, Update};
use super::{
    Decision, Part, Stamp, Surroundings, Target, create, delete, draft, meta, names, shape,
};
use crate::Status;
use crate::schema::fields::FieldValidation;

/// How often a write is decided anew because the object changed in between. A client that named a
/// version is told at once instead; one that did not expects to win in the end, however many others
/// write the same object. Of `n` that do, one wins with each sync: a hundred of them lose a
/// thousand times in a row once in twenty thousand writes.
const ATTEMPTS_MAX: usize = 1_000;

/// Writes to an embedded cluster.
pub struct Writes {
    pub(super) authority: Authority,
    clock: Clock,
    pub(super) ranges: Vec<AddressRange>,
    pub(super) node_ports: RangeInclusive<u16>,
    /// Addresses are derived from the services that exist, so services are written one at a time.
    pub(super) service_turn: Mutex<Claims>,
}

/// A write that a client asks for.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// The object, or the collection to create in.
    pub target: Target<'a>,
    /// Which part of it.
    pub part: Part,
    /// Whether to store anything.
    pub dry_run: DryRun,
    /// What to do about unknown fields.
    pub fields: FieldValidation,
    /// Fields that stood twice in the body.
    pub repeated: &'a [String],
    /// Who looks at the write before it is stored.
    pub admission: &'a dyn Admit,
}

/// A write that was done.
#[derive(Debug)]
pub struct Done {
    /// The HTTP status code.
    pub code: u16,
    /// The body of the answer.
    pub body: Bytes,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

impl Done {
    /// The same, with these warnings before its own.
    fn warned(mut self, warnings: Vec<String>) -> Self {
        self.warnings.splice(..0, warnings);
        self
    }
}

impl Writes {
    /// Writes through `authority`. Services get addresses of `ranges`, the first of which is the
    /// usual one.
    pub fn new(
        authority: Authority,
        clock: Clock,
        ranges: Vec<AddressRange>,
        node_ports: RangeInclusive<u16>,
    ) -> Self {
        Self {
            authority,
            clock,
            ranges,
            node_ports,
            service_turn: Mutex::default(),
        }
    }

    /// Creates an object.
    pub async fn create(&self, ask: &Ask<'_>, body: Value) -> Result<Done, Status> {
        let mut body = body;
        let mut warnings = shape::fit(ask.target.kind, &mut body, ask.fields, ask.repeated)?;
        warnings.extend(meta::settle_owners(&mut body, ""));
        match self.create_fitted(ask, &body).await {
            Ok(done) => Ok(done.warned(warnings)),
            Err(status) => Err(status.warned(warnings)),
        }
    }

    async fn create_fitted(&self, ask: &Ask<'_>, body: &Value) -> Result<Done, Status> {
        let generated = create::name_is_generated(body);
        let mut names_left = names::GENERATE_ATTEMPTS_MAX;
        let mut taken = None;
        for _ in 0..ATTEMPTS_MAX {
            match self.try_create(ask, body).await? {
                Created::Done(code, body, warnings) => {
                    return Ok(Done {
                        code,
                        body,
                        warnings,
                    });
                }
                Created::Moved => {}
                Created::Taken(status) => {
                    names_left -= 1;
                    if !generated || names_left == 0 {
                        return Err(status);
                    }
                    taken = Some(status);
                }
            }
        }
        Err(taken.unwrap_or_else(|| too_busy(&ask.target)))
    }

    /// Puts `body` in the place of an object, or creates it where the kind allows that.
    pub async fn update(&self, ask: &Ask<'_>, body: Value) -> Result<Done, Status> {
        let target = &ask.target;
        let creates = conduct::conduct(target.kind).absent == Absent::Created;
        if creates && ask.part == Part::Whole && self.read(target)?.is_none() {
            // What is created has no version; a dry run shows the one that was claimed.
            let body = match ask.dry_run {
                DryRun::All => body,
                DryRun::No => without_version(body),
            };
            return self.create(ask, body).await;
        }
        let mut body = body;
        let mut warnings = shape::fit(target.kind, &mut body, ask.fields, ask.repeated)?;
        meta::settle_name(target, &mut body)?;
        warnings.extend(meta::settle_owners(&mut body, ""));
        let changed = self.change(ask, |update, current| {
            Ok((update::update(update, current, body.clone())?, Vec::new()))
        });
        match changed.await {
            Ok(done) => Ok(done.warned(warnings)),
            Err(status) => Err(status.warned(warnings)),
        }
    }

    /// Patches an object.
    pub async fn patch(&self, ask: &Ask<'_>, patch: &Patch) -> Result<Done, Status> {
        self.change(ask, |update, current| {
            let mut object = patch.applied(&update.target, current)?;
            let kind = update.target.kind;
            let fitted = shape::fit(kind, &mut object, ask.fields, patch.repeated(ask.repeated));
            let mut warnings = fitted.map_err(|status| match status.code {
                400 => unreadable(&object, decoder_words(&status.message)),
                _ => status,
            })?;
            let when = " after mutating admission happens";
            warnings.extend(meta::settle_owners(&mut object, when));
            match update::decide(update, current, object) {
                Ok(decision) => Ok((decision, warnings)),
                Err(status) => Err(status.warned(warnings)),
            }
        })
        .await
    }

    /// Changes an object by a rule of the caller's, such as a new replica count.
    pub async fn change_with(
        &self,
        ask: &Ask<'_>,
        rule: impl Fn(&Value) -> Result<Value, Status>,
    ) -> Result<Done, Status> {
        self.change(ask, |update, current| {
            Ok((update::update(update, current, rule(current)?)?, Vec::new()))
        })
        .await
    }

    /// Deletes an object.
    pub async fn delete(
        &self,
        target: &Target<'_>,
        options: &DeleteOptions,
        admission: &dyn Admit,
    ) -> Result<Done, Status> {
        for _ in 0..ATTEMPTS_MAX {
            let current = self.must_read(target)?;
            let now = self.clock.wall();
            admission.delete(&current.value)?;
            let decision = delete::delete(target, &current.value, options, now)?;
            let stored = match options.dry_run {
                DryRun::All => Some(shown(&decision, &current.value).clone()),
                DryRun::No => self.carry_out(target, &decision, &current).await?,
            };
            let Some(stored) = stored else { continue };
            let (code, body) = delete::answer(target, &decision, &stored, options);
            return Ok(Done {
                code,
                body: encoded(&body)?,
                warnings: delete::warnings(target, options),
            });
        }
        Err(too_busy(target))
    }

    /// What is stored under the target's name, as its kind shows it.
    pub(super) fn read(&self, target: &Target) -> Result<Option<Current>, Status> {
        let resource = target.kind.stored_as();
        let name = ObjectName::new(target.namespace, target.name);
        let Some(object) = self.object(&resource, &name)? else {
            return Ok(None);
        };
        let value = draft::from_stored(target.kind, parsed(&object)?);
        Ok(Some(Current {
            value,
            version: object.header.version,
        }))
    }

    pub(super) fn must_read(&self, target: &Target) -> Result<Current, Status> {
        let (group, plural) = target.resource();
        let missing = || Status::not_found(group, plural, target.name);
        self.read(target)?.ok_or_else(missing)
    }

    /// Reads what is stored.
    pub fn reader(&self) -> &store::Reader {
        self.authority.reader()
    }

    /// The first address of the first range: that of the cluster's own service.
    pub(super) fn first_address(&self) -> std::net::IpAddr {
        self.ranges[0].first()
    }

    /// The time, as objects are stamped with it.
    pub(super) fn now(&self) -> jiff::Timestamp {
        self.clock.wall()
    }

    /// The authority that is written through.
    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Does what was decided. Nothing where somebody was faster; else the object as it is then.
    pub(super) async fn carry_out(
        &self,
        target: &Target<'_>,
        decision: &Decision,
        current: &Current,
    ) -> Result<Option<Value>, Status> {
        if *decision == Decision::Unchanged {
            return Ok(Some(current.value.clone()));
        }
        let outcome = self.swap(target, decision, current).await?;
        outcome
            .map(|outcome| stored(target, decision, outcome))
            .transpose()
    }

    /// The same, with the object as a client is shown it.
    async fn stored_bytes(
        &self,
        target: &Target<'_>,
        decision: &Decision,
        current: &Current,
    ) -> Result<Option<Bytes>, Status> {
        if *decision == Decision::Unchanged {
            return encoded(&current.value).map(Some);
        }
        match (self.swap(target, decision, current).await?, decision) {
            (None, _) => Ok(None),
            // What goes by its last change is shown at the version that it had.
            (Some(_), Decision::Delete(last)) => encoded(last).map(Some),
            (Some(outcome), _) => stored_bytes(target, outcome).map(Some),
        }
    }

    async fn swap(
        &self,
        target: &Target<'_>,
        decision: &Decision,
        current: &Current,
    ) -> Result<Option<Outcome>, Status> {
        let draft = |object| draft::draft(target.kind, object).map(Box::new);
        let action = match decision {
            Decision::Unchanged => Action::Check,
            Decision::Delete(_) => Action::Delete,
            Decision::Put(object) => Action::Put(draft(object)?),
            Decision::PutAndDelete(object) => Action::PutAndDelete(draft(object)?),
        };
        let swap = Swap {
            resource: target.kind.stored_as(),
            name: ObjectName::new(target.namespace, target.name),
            expect: Expect::Version(current.version.clone()),
            action,
        };
        match self.authority.swap(vec![swap]).await {
            Ok((outcomes, _durable)) => Ok(outcomes.into_iter().next()),
            Err(Refusal::Conflict { .. }) => Ok(None),
            Err(refusal) => Err(refused(target, refusal)),
        }
    }

    async fn try_create(&self, ask: &Ask<'_>, body: &Value) -> Result<Created, Status> {
        let target = &ask.target;
        let inside = match target.kind.namespaced {
            true => self.namespace(target.namespace)?,
            false => None,
        };
        let (turn, network) = self.network(target, meta::name(body)).await?;
        let references = self.references(target, body)?;
        let around = Surroundings {
            namespace: inside.as_ref().map(|namespace| &namespace.value),
            network: network.as_ref(),
            references: references.as_ref(),
            user: ask.admission.user(),
        };
        let definition = self.definition_of(target, meta::name(body))?;
        let object = create::create(target, body.clone(), &self.stamp()?, &around)?;
        // Who takes nothing need not keep others waiting while it is made durable.
        let _turn = turn.filter(|_| !takes_nothing(&object, None));
        ask.admission.create(&object)?;
        let warnings = create::warnings(target, &object, None);
        let name = ObjectName::new(target.namespace, meta::name(&object));
        let resource = target.kind.stored_as();
        if ask.dry_run == DryRun::All {
            return match self.existing(target, &resource, &name)? {
                Some(existing) => {
                    let status = create::already_exists(target, &object, Some(&existing));
                    Ok(Created::Taken(status.warned(warnings)))
                }
                None => {
                    let object = create::with_claimed_version(object, body);
                    Ok(Created::Done(201, encoded(&object)?, warnings))
                }
            };
        }
        create::check_unstored(body)?;
        let put = Action::Put(Box::new(draft::draft(target.kind, &object)?));
        let (named, expect) = (name.clone(), Expect::Absent);
        let mut swaps = vec![Swap {
            resource: resource.clone(),
            name: named,
            expect,
            action: put,
        }];
        // The namespace and the definition must still be those that were looked at: they may have
        // begun to end.
        swaps.extend(inside.map(|inside| inside.guard(Resource::new("", "namespaces"))));
        swaps.extend(definition.map(|definition| definition.guard(definitions())));
        match self.authority.swap(swaps).await {
            Ok((outcomes, _durable)) => {
                let first = outcomes.into_iter().next().unwrap_or(Outcome::Checked);
                let stored = stored_bytes(target, first)?;
                Ok(Created::Done(201, stored, warnings))
            }
            Err(Refusal::Conflict { index: 0, .. }) => {
                let existing = self.existing(target, &resource, &name)?;
                let status = create::already_exists(target, &object, existing.as_ref());
                Ok(Created::Taken(status.warned(warnings)))
            }
            Err(Refusal::Conflict { .. }) => Ok(Created::Moved),
            Err(refusal) => Err(refused(target, refusal)),
        }
    }

    /// Decides with `rule` until nobody was faster.
    async fn change(
        &self,
        ask: &Ask<'_>,
        rule: impl Fn(&Update, &Value) -> Result<(Decision, Vec<String>), Status>,
    ) -> Result<Done, Status> {
        let target = &ask.target;
        for _ in 0..ATTEMPTS_MAX {
            let current = self.must_read(target)?;
            let (turn, network) = self.network(target, target.name).await?;
            let stamp = self.stamp()?;
            let around = Surroundings {
                network: network.as_ref(),
                ..Surroundings::default()
            };
            let update = Update {
                target: *target,
                part: ask.part,
                stamp: &stamp,
                around,
            };
            let (decision, mut warnings) = rule(&update, &current.value)?;
            let new = shown(&decision, &current.value);
            // The same here: what it has is its own as long as it is the version that was read.
            let _turn = turn.filter(|_| !takes_nothing(new, Some(&current.value)));
            if decision != Decision::Unchanged {
                ask.admission.update(new, &current.value)?;
            }
            let body = match ask.dry_run {
                DryRun::All => Some(encoded(new)?),
                DryRun::No => self.stored_bytes(target, &decision, &current).await?,
            };
            if let Some(body) = body {
                warnings.extend(create::warnings(target, new, Some(&current.value)));
                return Ok(Done {
                    code: 200,
                    body,
                    warnings,
                });
            }
        }
        let (group, plural) = target.resource();
        Err(Status::conflict(
            group,
            plural,
            target.name,
            update::MODIFIED,
        ))
    }

    fn stamp(&self) -> Result<Stamp, Status> {
        Ok(Stamp {
            now: self.clock.wall(),
            uid: fresh_uuid()?,
            random: random()?,
        })
    }
}

/// How an attempt to create ended.
enum Created {
    Done(u16, Bytes, Vec<String>),
    Taken(Status),
    /// Its namespace or its definition changed meanwhile.
    Moved,
}
