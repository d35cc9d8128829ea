//! An authority and its certificates in a folder: load them, make those that are missing, renew
//! those that are due.

use std::path::{Path, PathBuf};

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tracing::info;

use super::leaf::{Leaf, is_signed_by, public_key};
use super::{Authority, Credential, Error, Wanted, one_block};
use crate::clock::Clock;
use crate::files::{self, Audience};

/// A folder of certificates (`NAME.crt`) and keys (`NAME.key`).
pub struct Folder {
    path: PathBuf,
    clock: Clock,
}

impl Folder {
    /// Opens the folder, making it if need be. The caller holds whatever lock keeps others out.
    pub fn open(path: &Path, clock: Clock) -> Result<Self, Error> {
        files::create_dir(path)?;
        Ok(Self {
            path: path.to_owned(),
            clock,
        })
    }

    /// The authority in `NAME.crt` and `NAME.key`. It is made on first use and never replaced:
    /// clients trust it by its certificate.
    pub fn authority(&self, name: &str, common_name: &str) -> Result<Authority, Error> {
        let (certificate_path, key_path) = self.paths(name);
        let now = self.clock.wall();
        let certificate = present(self.certificate(&certificate_path))?;
        let key = present(self.key(&key_path))?;
        match (certificate, key) {
            (Some(certificate), Some(key)) => {
                if public_key(&certificate)? != key.der_bytes() {
                    return Err(Error::NotAPair {
                        certificate: certificate_path,
                        key: key_path,
                    });
                }
                let at = Leaf::read(&certificate)?.validity.not_after;
                if at < now {
                    return Err(Error::AuthorityExpired {
                        path: certificate_path,
                        at,
                    });
                }
                Ok(Authority::from_parts(certificate, key))
            }
            (Some(_), None) => Err(Error::KeyLost(key_path)),
            // The key is written first, so this is a first start that was cut short, or a lost
            // certificate; one made anew for the same key is trusted by what the key has signed.
            (None, Some(key)) => {
                self.keep_authority(Authority::with_key(common_name, key, now)?, name)
            }
            (None, None) => self.keep_authority(Authority::create(common_name, now)?, name),
        }
    }

    /// The certificate in `NAME.crt` with its key in `NAME.key`. A new pair is issued if one of the
    /// two is missing or unreadable as such, if they do not say what is wanted, if another
    /// authority signed them, or if they are due for renewal. A key that others may read is
    /// refused.
    pub fn credential(
        &self,
        name: &str,
        authority: &Authority,
        wanted: &Wanted,
    ) -> Result<Credential, Error> {
        match self.usable(name, authority, wanted) {
            Ok(Some(credential)) => return Ok(credential),
            Ok(None) | Err(Error::BadCertificateFile(_) | Error::BadKeyFile(_)) => {}
            Err(error) => return Err(error),
        }
        let credential = authority.issue(wanted, self.clock.wall())?;
        let (certificate_path, key_path) = self.paths(name);
        files::write(&key_path, credential.key_pem().as_bytes(), Audience::Owner)?;
        let certificate = credential.certificate_pem();
        files::write(
            &certificate_path,
            certificate.as_bytes(),
            Audience::Everyone,
        )?;
        info!(certificate = %certificate_path.display(), "issued a certificate");
        Ok(credential)
    }

    /// The P-256 signing key in `NAME.key`, made on first use and never replaced.
    pub fn signing_key(&self, name: &str) -> Result<PrivatePkcs8KeyDer<'static>, Error> {
        let (_, path) = self.paths(name);
        let key = match present(self.key(&path))? {
            Some(key) => key,
            None => {
                let key = KeyPair::generate().map_err(Error::Make)?;
                files::write(&path, key.serialize_pem().as_bytes(), Audience::Owner)?;
                info!(key = %path.display(), "made a signing key");
                key
            }
        };
        Ok(PrivatePkcs8KeyDer::from(key.serialize_der()))
    }

    fn usable(
        &self,
        name: &str,
        authority: &Authority,
        wanted: &Wanted,
    ) -> Result<Option<Credential>, Error> {
        let (certificate_path, key_path) = self.paths(name);
        let certificate = present(self.certificate(&certificate_path))?;
        let key = present(self.key(&key_path))?;
        let (Some(certificate), Some(key)) = (certificate, key) else {
            return Ok(None);
        };
        let leaf = Leaf::read(&certificate)?;
        let fits = leaf.says(wanted)
            && !leaf.validity.is_due(self.clock.wall())
            && is_signed_by(&certificate, authority)
            && public_key(&certificate)? == key.der_bytes();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(fits.then_some(Credential { certificate, key }))
    }

    fn keep_authority(&self, authority: Authority, name: &str) -> Result<Authority, Error> {
        let (certificate_path, key_path) = self.paths(name);
        files::write(&key_path, authority.key_pem().as_bytes(), Audience::Owner)?;
        let certificate = authority.certificate_pem();
        files::write(
            &certificate_path,
            certificate.as_bytes(),
            Audience::Everyone,
        )?;
        info!(certificate = %certificate_path.display(), "made a certificate authority");
        Ok(authority)
    }

    fn certificate(&self, path: &Path) -> Result<CertificateDer<'static>, Error> {
        let bytes = files::read(path, PEM_BYTES_MAX)?;
        let der = one_block(&bytes, "CERTIFICATE");
        let certificate = der
            .ok_or_else(|| Error::BadCertificateFile(path.to_owned()))?
            .into();
        match Leaf::read(&certificate) {
            Ok(_) => Ok(certificate),
            Err(_) => Err(Error::BadCertificateFile(path.to_owned())),
        }
    }

    fn key(&self, path: &Path) -> Result<KeyPair, Error> {
        let bytes = files::read_private(path, PEM_BYTES_MAX)?;
        let der = one_block(&bytes, "PRIVATE KEY");
        let der = der
            .ok_or_else(|| Error::BadKeyFile(path.to_owned()))?
            .into();
        KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ECDSA_P256_SHA256)
            .map_err(|_| Error::BadKeyFile(path.to_owned()))
    }

    fn paths(&self, name: &str) -> (PathBuf, PathBuf) {
        let file = |ending| self.path.join(format!("{name}.{ending}"));
        (file("crt"), file("key"))
    }
}

/// A missing file is an answer here, not a fault.
fn present<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(Error::File(files::Error::Missing(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A certificate has about 800 bytes as PEM; one with hundreds of names still fits.
const PEM_BYTES_MAX: u64 = 64 * 1024;
